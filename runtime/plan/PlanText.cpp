#include "runtime/plan/PlanText.h"

#include "runtime/plan/StepText.h"

#include <algorithm>
#include <fmt/format.h>

namespace msc {
namespace {

const char *kindName(plan::Buffer::Kind kind) {
  switch (kind) {
  case plan::Buffer::PARAMETER: return "parameter";
  case plan::Buffer::INPUT: return "input";
  case plan::Buffer::OUTPUT: return "output";
  case plan::Buffer::SCALAR: return "scalar";
  case plan::Buffer::CONSTANT: return "constant";
  default: return "activation";
  }
}

const char *purposeName(plan::Program::Purpose purpose) {
  return purpose == plan::Program::TRAIN ? "train" : purpose == plan::Program::EVALUATE ? "evaluate" : "predict";
}

class Printer {
public:
  Printer(const PlanIndex &index, int64_t rank) : index(index), plan(index.plan()), rank(rank) {}

  std::string run() {
    header();
    for (uint32_t i = 0; i < index.bufferCount(); ++i)
      buffer(i);
    for (const plan::Parameter &parameter : plan.parameters())
      line("parameter '{}' in %{}: {} init {}({}, {}){}", parameter.name(), parameter.buffer(),
           parameter.trained() ? "trained" : "state", parameter.initializer().kind(), parameter.initializer().a(),
           parameter.initializer().b(), parameter.state_of().empty() ? "" : " of '" + parameter.state_of() + "'");
    for (const plan::Schedule &schedule : plan.schedules())
      line("schedule '{}' in %{}: {}({}){}{}", schedule.name(), schedule.buffer(), schedule.kind(),
           fmt::join(schedule.values(), ", "),
           schedule.warmup() == 0 ? "" : fmt::format(", {} steps of warm-up", schedule.warmup()),
           schedule.every() <= 1 ? "" : fmt::format(", every {} steps", schedule.every()));
    for (const plan::Kernel &kernel : plan.kernels()) {
      line("kernel '{}': {} arguments", kernel.name(), kernel.arguments());
      for (const plan::Kernel::Variant &variant : kernel.variants())
        line("  ({}) {}{}{}", fmt::join(variant.inner(), ", "), variant.symbol(), cutRow(variant), gpuLaunch(variant));
    }
    for (const plan::Program &program : plan.programs())
      printProgram(program);
    return std::move(text);
  }

private:
  template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args) {
    text += fmt::format(format, std::forward<Args>(args)...);
    text += '\n';
  }

  /// ", in 13 pieces, 104 bytes of scratch".
  static std::string cutRow(const plan::Kernel::Variant &variant) {
    return variant.pieces() == 0 ? "" : fmt::format(", in {} pieces, {} bytes of scratch", variant.pieces(), variant.scratch());
  }

  /// ", on a GPU g_12ab in blocks of 256, 64 / 1024 of them per unit".
  static std::string gpuLaunch(const plan::Kernel::Variant &variant) {
    const plan::GpuLaunch &gpu = variant.gpu();
    return !variant.has_gpu() ? "" : fmt::format(", on a GPU {} in blocks of {}, {} / {} of them per unit{}", gpu.entry(), gpu.block(),
                                                 gpu.items(), gpu.block_items(),
                                                 gpu.unit_scratch() == 0 ? "" : fmt::format(", {} bytes of scratch", gpu.unit_scratch()));
  }

  void header() {
    line("plan '{}' for {} devices, digest {}", plan.network(), plan.devices(), plan.digest());
    line("parallel_mode {}{}, device_target {}, seed {}", plan.parallel_mode(),
         plan.search_mode().empty() ? "" : ", search_mode " + plan.search_mode(), plan.device_target(), plan.seed());
    line("arena {} bytes per rank", plan.arena_bytes());
    for (const plan::CodeObject &object : plan.objects())
      line("machine code {}: {} bytes", object.isa(), object.code().size());
    if (plan.has_training())
      line("training: {}, minimize '{}'",
           plan.training().steps() != 0 ? fmt::format("{} steps", plan.training().steps())
                                        : fmt::format("{} epochs", plan.training().epochs()),
           plan.training().loss());
    for (const plan::Dataset &dataset : plan.datasets())
      line("dataset{}: {}, seed {}, {}", dataset.name().empty() ? "" : fmt::format(" '{}'", dataset.name()),
           dataset.source(), dataset.seed(),
           dataset.steps() != 0 ? fmt::format("{} steps per epoch", dataset.steps()) : "all batches of the files");
    for (const plan::OperatorNote &note : plan.operators())
      line("operator '{}' {} in_strategy {} ({})", note.name(), note.op(), note.in_strategy(), note.origin());
    line("rank {}:", rank);
  }

  void buffer(uint32_t i) {
    const plan::Buffer &record = index.buffer(i);
    std::string view = record.view_of() == 0 ? "" : fmt::format(" view of %{}", record.view_of() - 1);
    line("%{} '{}' {} {}[{}] local [{}] sharding {} at {} bytes {}{}", i, record.name(), kindName(record.kind()),
         dataTypeName(record.dtype()), fmt::join(record.shape(), ", "), fmt::join(index.localShape(i, rank), ", "),
         index.sharding(i).str(), record.offset(), record.bytes(), view);
  }

  void printProgram(const plan::Program &program) {
    line("program {}", purposeName(program.purpose()));
    for (const plan::Input &input : program.inputs())
      line("input '{}' in %{}", input.name(), input.buffer());
    for (const plan::Output &output : program.outputs())
      line("output '{}' in %{}{}", output.name(), output.buffer(), output.printed() ? ", printed" : "");
    const plan::Variant *variant = PlanIndex::variantOf(program, rank);
    for (int i = 0; variant && i < variant->groups_size(); ++i) {
      std::vector<int64_t> members = membersOf(variant->groups(i), rank);
      line("group {}: {} = ({})", i, groupName(members, index.devices()), fmt::join(members, ", "));
    }
    for (int i = 0; variant && i < variant->steps_size(); ++i)
      step(*variant, i);
  }

  void step(const plan::Variant &variant, int number) {
    const plan::Step &step = variant.steps(number);
    std::string place = index.place(step.location());
    std::string after = step.after().empty() ? "" : fmt::format(" after ({})", fmt::join(step.after(), ", "));
    bool constant = std::count(variant.constants().begin(), variant.constants().end(), static_cast<uint32_t>(number)) != 0;
    line("{:4} {} '{}' {}: reads ({}) writes ({}){}{}{}{}", number, step.op(), step.name(),
         constant ? "at load" : phaseName(step.phase()), fmt::join(step.reads(), ", "), fmt::join(step.writes(), ", "),
         index.isIdle(step, rank) ? " nothing: its results are empty here" : detail(step), step.stream() == 0 ? "" : fmt::format(" stream {}", step.stream()), after,
         place.empty() ? "" : "  # " + place);
  }

  std::string detail(const plan::Step &step) {
    switch (step.body_case()) {
    case plan::Step::kLaunch: {
      const plan::Kernel &kernel = plan.kernels(static_cast<int>(step.launch().kernel()));
      std::vector<int64_t> inner = sizesOf(step.launch().inner());
      std::string symbol;
      uint32_t pieces = 0;
      for (const plan::Kernel::Variant &variant : kernel.variants())
        if (std::equal(inner.begin(), inner.end(), variant.inner().begin(), variant.inner().end())) {
          symbol = " " + variant.symbol();
          pieces = variant.pieces();
        }
      return fmt::format(" kernel '{}'{} 0..{} in {}", kernel.name(), symbol, elementCount(sizesOf(step.launch().range())),
                         pieces != 0 ? fmt::format("{} pieces", pieces) : fmt::format("{} tasks", step.launch().tasks()));
    }
    case plan::Step::kMatmul:
      return fmt::format(" transpose ({}, {}){}{}{} in {} tasks", step.matmul().transpose_left(),
                         step.matmul().transpose_right(), step.matmul().sum_batch() ? " sum of batches" : "", step.matmul().bias() ? " bias" : "",
                         step.matmul().activation().empty() ? "" : " " + step.matmul().activation(), step.matmul().tasks());
    case plan::Step::kCopy: return step.copy().has_regions() ? regionsText(tensorsOf(step.copy()), step.copy()) : "";
    case plan::Step::kCall: return attributesOf(step.call()) + fmt::format(" in {} tasks", step.call().tasks());
    case plan::Step::kFill: return fmt::format(" value {}", step.fill().value());
    case plan::Step::kCollective:
      return fmt::format(" {} group {} {} bytes{}{}{}{}", collectiveName(step.collective().kind()), step.collective().group(),
                         step.collective().bytes(),
                         step.collective().has_regions() ? regionsText(tensorsOf(step.collective()), step.collective()) : "",
                         step.collective().also_size() == 0 ? ""
                                                            : fmt::format(" of {} tensors", step.collective().also_size() + 1),
                         step.collective().asynchronous() ? " started" : "",
                         step.collective().reason().empty() ? "" : ", " + step.collective().reason());
    case plan::Step::kWait: return fmt::format(" for step {}", step.wait().step());
    default: return "";
    }
  }

  /// " 2 regions, others 0".
  template <typename Message> static std::string regionsText(const std::vector<MovedTensor> &tensors, const Message &message) {
    int count = 0;
    for (const MovedTensor &tensor : tensors)
      count += tensor.regions ? tensor.regions->regions_size() : 0;
    return fmt::format(" {} region{}{}", count, count == 1 ? "" : "s",
                       message.has_fill() ? fmt::format(", others {}", message.fill().value()) : "");
  }

  /// " kernel_size (3, 3) pad_mode same".
  static std::string attributesOf(const plan::Call &call) {
    std::string text;
    for (const plan::Call::Attribute &attribute : call.attributes()) {
      std::string value = attribute.text();
      if (attribute.ints_size() == 1)
        value = fmt::format("{}", attribute.ints(0));
      else if (!attribute.ints().empty())
        value = fmt::format("({})", fmt::join(attribute.ints(), ", "));
      else if (!attribute.floats().empty())
        value = fmt::format("{}", fmt::join(attribute.floats(), ", "));
      text += fmt::format(" {} {}", attribute.name(), value.empty() ? "()" : value);
    }
    return text;
  }

  /// On this rank.
  std::vector<int64_t> sizesOf(const google::protobuf::RepeatedPtrField<plan::SizeOf> &list) const {
    std::vector<int64_t> result;
    for (const plan::SizeOf &size : list)
      result.push_back(index.localShape(size.buffer(), rank)[size.dim()]);
    return result;
  }

  const PlanIndex &index;
  const plan::Plan &plan;
  int64_t rank;
  std::string text;
};

} // namespace

std::string planText(const PlanIndex &index, int64_t rank) { return Printer(index, rank).run(); }

} // namespace msc
