#include "dialects/dist/MeshNotation.h"

#include "runtime/plan/Refinement.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace msc::dist {

namespace {

Error wrong(const std::string &message, const std::string &help) {
  return {ExitCode::Usage, message, help};
}

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t at;
  while ((at = text.find(separator)) != std::string_view::npos) {
    parts.push_back(trim(text.substr(0, at)));
    text.remove_prefix(at + 1);
  }
  parts.push_back(trim(text));
  return parts;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc() && end == text.data() + text.size() && value > 0;
  return whole ? std::optional(value) : std::nullopt;
}

/// A named axis or part of one: coordinates of `size`, behind more major parts whose product is `before`.
struct Part {
  size_t axis = 0;
  int64_t before = 1;
  int64_t size = 1;
};

/// Reads "x" and "x(2)2".
Result<Part> parsePart(std::string_view text, const Mesh &mesh) {
  std::string_view name = trim(text.substr(0, text.find('(')));
  auto axis = std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis &a) { return a.name == name; });
  if (axis == mesh.end()) {
    std::string names;
    for (const MeshAxis &a : mesh)
      names += (names.empty() ? "" : ", ") + a.name;
    return wrong("the mesh has no axis '" + std::string(name) + "'", "its axes are " + names);
  }
  Part part{static_cast<size_t>(axis - mesh.begin()), 1, axis->size};
  if (size_t open = text.find('('); open != std::string_view::npos) {
    size_t close = text.find(')', open);
    std::optional<int64_t> before, size;
    if (close != std::string_view::npos) {
      before = number(text.substr(open + 1, close - open - 1));
      size = number(trim(text.substr(close + 1)));
    }
    if (!before || !size)
      return wrong("'" + std::string(text) + "' is no part of an axis", "write it as x(1)2");
    if (axis->size % *before != 0 || axis->size / *before % *size != 0)
      return wrong("axis '" + axis->name + "' of size " + std::to_string(axis->size) + " has no part '" +
                       std::string(text) + "'",
                   "both numbers and their product have to divide the size");
    part.before = *before;
    part.size = *size;
  }
  return part;
}

struct Notation {
  std::vector<std::vector<Part>> dims;
  std::vector<std::pair<Part, ReduceKind>> partial;
};

std::optional<ReduceKind> kindNamed(std::string_view name) {
  if (name.empty())
    return ReduceKind::Sum;
  for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Min, ReduceKind::Max})
    if (name == reduceKindName(kind))
      return kind;
  return std::nullopt;
}

Result<Notation> parseNotation(const std::string &text, const Mesh &mesh, size_t rank) {
  std::string form = "write it as [x, y.z, -] +{w}: per dimension its axes, '-' for none, then partial sums";
  std::string_view rest = trim(text);
  size_t close = rest.find(']');
  if (rest.empty() || rest.front() != '[' || close == std::string_view::npos)
    return wrong("'" + text + "' is no sharding", form);
  Notation notation;
  std::string_view inside = trim(rest.substr(1, close - 1));
  for (std::string_view dim : inside.empty() ? std::vector<std::string_view>() : split(inside, ',')) {
    notation.dims.emplace_back();
    if (dim == "-")
      continue;
    for (std::string_view axis : split(dim, '.')) {
      if (axis.empty())
        return wrong("'" + text + "' names no axis for dimension " + std::to_string(notation.dims.size() - 1),
                     "write '-' for a dimension that is not split");
      Result<Part> part = parsePart(axis, mesh);
      if (!part)
        return part.error();
      notation.dims.back().push_back(*part);
    }
  }
  if (notation.dims.size() != rank)
    return wrong("'" + text + "' has " + std::to_string(notation.dims.size()) +
                     (notation.dims.size() == 1 ? " dimension" : " dimensions") + ", the shape has " +
                     std::to_string(rank),
                 form);
  rest = trim(rest.substr(close + 1));
  while (!rest.empty()) {
    size_t open = rest.find('{'), end = rest.find('}');
    std::optional<ReduceKind> kind;
    if (rest.front() == '+' && open != std::string_view::npos && end != std::string_view::npos && open < end)
      kind = kindNamed(trim(rest.substr(1, open - 1)));
    if (!kind)
      return wrong("'" + std::string(rest) + "' is no list of partial axes", "write +{z}, +max{z}, +min{z} or +prod{z}");
    for (std::string_view axis : split(rest.substr(open + 1, end - open - 1), ',')) {
      Result<Part> part = parsePart(axis, mesh);
      if (!part)
        return part.error();
      notation.partial.emplace_back(*part, *kind);
    }
    rest = trim(rest.substr(end + 1));
  }
  return notation;
}

/// Where each axis is cut, as products from its major end: 1, ..., size.
using Cuts = std::vector<std::vector<int64_t>>;

Result<Cuts> cutsOf(const Notation &notation, const Mesh &mesh) {
  Cuts cuts;
  for (const MeshAxis &axis : mesh)
    cuts.push_back({1, axis.size});
  auto cut = [&](const Part &part) {
    cuts[part.axis].push_back(part.before);
    cuts[part.axis].push_back(part.before * part.size);
  };
  for (const auto &dim : notation.dims)
    for (const Part &part : dim)
      cut(part);
  for (const auto &[part, kind] : notation.partial)
    cut(part);
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    std::sort(cuts[axis].begin(), cuts[axis].end());
    cuts[axis].erase(std::unique(cuts[axis].begin(), cuts[axis].end()), cuts[axis].end());
    for (size_t i = 1; i < cuts[axis].size(); ++i)
      if (cuts[axis][i] % cuts[axis][i - 1] != 0)
        return wrong("parts of axis '" + mesh[axis].name + "' do not fit into each other",
                     "choose parts whose products divide each other");
  }
  return cuts;
}

} // namespace

Result<Mesh> parseMesh(const std::string &text) {
  Mesh mesh;
  for (std::string_view part : split(text, ',')) {
    size_t equals = part.find('=');
    std::optional<int64_t> size;
    if (equals != std::string_view::npos)
      size = number(trim(part.substr(equals + 1)));
    std::string name(trim(part.substr(0, equals)));
    bool isName = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_') &&
                  std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!size || !isName)
      return wrong("'" + std::string(part) + "' is no axis of a mesh", "write the mesh as x=2,y=4");
    if (std::any_of(mesh.begin(), mesh.end(), [&](const MeshAxis &axis) { return axis.name == name; }))
      return wrong("the mesh has two axes '" + name + "'", "give each axis its own name");
    mesh.push_back({name, *size});
  }
  return mesh;
}

Result<Sharding> parseMeshSharding(const std::string &text, const Mesh &mesh, size_t rank) {
  Result<Notation> notation = parseNotation(text, mesh, rank);
  if (!notation)
    return notation.error();
  Result<Cuts> cuts = cutsOf(*notation, mesh);
  if (!cuts)
    return cuts.error();
  Sharding sharding;
  std::vector<std::vector<int32_t>> first(mesh.size()); // axis of the device matrix behind each cut
  for (size_t axis = 0; axis < mesh.size(); ++axis)
    for (size_t i = 1; i < (*cuts)[axis].size(); ++i) {
      first[axis].push_back(static_cast<int32_t>(sharding.axes.size()));
      sharding.axes.push_back((*cuts)[axis][i] / (*cuts)[axis][i - 1]);
    }
  auto axesOf = [&](const Part &part) {
    std::vector<int32_t> axes;
    const std::vector<int64_t> &at = (*cuts)[part.axis];
    for (size_t i = 0; i + 1 < at.size(); ++i)
      if (at[i] >= part.before && at[i + 1] <= part.before * part.size)
        axes.push_back(first[part.axis][i]);
    return axes;
  };
  for (const auto &dim : notation->dims) {
    auto &axes = sharding.dims.emplace_back();
    for (const Part &part : dim)
      for (int32_t axis : axesOf(part))
        axes.push_back(axis);
  }
  for (const auto &[part, kind] : notation->partial)
    for (int32_t axis : axesOf(part))
      sharding.partial.push_back({axis, kind});
  std::sort(sharding.partial.begin(), sharding.partial.end(),
            [](const PartialAxis &a, const PartialAxis &b) { return a.axis < b.axis; });
  if (std::string flaw = sharding.check(sharding.devices(), rank); !flaw.empty())
    return wrong("'" + text + "' uses an axis twice", "an axis cuts one dimension, or is partial, or repeats");
  return sharding;
}

std::string meshText(const Sharding &sharding, const Mesh &mesh) {
  std::vector<int64_t> sizes;
  for (const MeshAxis &axis : mesh)
    sizes.push_back(axis.size);
  auto refined = commonRefinement({&sizes, &sharding.axes});
  if (!refined)
    return sharding.str();
  Sharding fine = refine(sharding, *refined);
  // The part of the mesh that each fine axis is.
  std::vector<Part> parts(refined->size());
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    int64_t before = 1;
    for (int32_t at : refineAxes(sizes, {static_cast<int32_t>(axis)}, *refined)) {
      parts[at] = {axis, before, (*refined)[at]};
      before *= (*refined)[at];
    }
  }
  auto text = [&](const std::vector<int32_t> &axes, const char *joint) {
    std::string all;
    for (size_t i = 0; i < axes.size();) {
      Part part = parts[axes[i++]];
      for (; i < axes.size(); ++i) {
        const Part &next = parts[axes[i]];
        if (next.axis != part.axis || next.before != part.before * part.size)
          break;
        part.size *= next.size;
      }
      all += (all.empty() ? "" : joint) + mesh[part.axis].name;
      if (part.size != mesh[part.axis].size)
        all += "(" + std::to_string(part.before) + ")" + std::to_string(part.size);
    }
    return all;
  };
  std::string all = "[";
  for (size_t dim = 0; dim < fine.dims.size(); ++dim)
    all += (dim ? ", " : "") + (fine.dims[dim].empty() ? "-" : text(fine.dims[dim], "."));
  all += "]";
  std::map<ReduceKind, std::vector<int32_t>> partial;
  for (const PartialAxis &p : fine.partial)
    partial[p.kind].push_back(p.axis);
  for (const auto &[kind, axes] : partial)
    all += std::string(" +") + (kind == ReduceKind::Sum ? "" : reduceKindName(kind)) + "{" + text(axes, ", ") + "}";
  return all;
}

} // namespace msc::dist
