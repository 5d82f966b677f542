// Where the elements of a tensor are, by the same rules as runtime/plan/Sharding.h. The text of a sharding is
// "(2, 4) [0, 1] partial(sum: 1)": the device matrix, per dimension the axes that cut it ('-' none, '.' joins several,
// the most major first), and the axes along which every rank holds one term of a reduction.

function numbersIn(text, separator) { return text === "" ? [] : text.split(separator).map(Number); }

/** "(2, 4) [0, 1] partial(sum: 1)" -> {axes, dims, partial: [{axis, kind}]}. */
function parseSharding(text) {
  const [, matrix, dims, partial] = /^\(([^)]*)\) \[([^\]]*)\](?: partial\(([^)]*)\))?$/.exec(text);
  return {
    axes: numbersIn(matrix, ", "),
    dims: dims === "" ? [] : dims.split(", ").map((dim) => (dim === "-" ? [] : numbersIn(dim, "."))),
    partial: (partial ? partial.split(", ") : []).map((term) => {
      const [kind, axis] = term.split(": ");
      return {kind, axis: Number(axis)};
    }),
  };
}

/** Coordinates of a rank in the device matrix, row-major. */
function coordinatesOf(sharding, rank) {
  const coordinates = [];
  for (let axis = sharding.axes.length - 1; axis >= 0; --axis) {
    coordinates[axis] = rank % sharding.axes[axis];
    rank = Math.floor(rank / sharding.axes[axis]);
  }
  return coordinates;
}

/** The number that the coordinates on `axes` spell, the most major first. */
function indexAlong(sharding, axes, coordinates) {
  return axes.reduce((index, axis) => index * sharding.axes[axis] + coordinates[axis], 0);
}

function piecesOf(sharding, dim) {
  return sharding.dims[dim].reduce((pieces, axis) => pieces * sharding.axes[axis], 1);
}

/** Piece `piece` of `pieces` of a dimension: [floor(p n / P), floor((p + 1) n / P)). */
function pieceRange(size, piece, pieces) {
  return {begin: Math.floor((piece * size) / pieces), end: Math.floor(((piece + 1) * size) / pieces)};
}

/** Which piece of each dimension a rank holds. */
function pieceIndices(sharding, rank) {
  const coordinates = coordinatesOf(sharding, rank);
  return sharding.dims.map((axes) => indexAlong(sharding, axes, coordinates));
}

/** The global indices that a rank holds, one range per dimension. */
function localBox(sharding, shape, rank) {
  return pieceIndices(sharding, rank).map((piece, dim) => pieceRange(shape[dim], piece, piecesOf(sharding, dim)));
}

/** Local sizes of a rank. */
function localShape(value, rank) {
  return localBox(parseSharding(value.sharding), value.shape, rank).map(({begin, end}) => end - begin);
}

/** Number of different pieces of the tensor. */
function pieceCount(sharding) { return sharding.dims.reduce((count, _, dim) => count * piecesOf(sharding, dim), 1); }

/** The number of the piece that a rank holds, row-major over the dimensions. */
function pieceNumber(sharding, rank) {
  return pieceIndices(sharding, rank).reduce((number, piece, dim) => number * piecesOf(sharding, dim) + piece, 0);
}

/** Number of terms, and which of them a rank holds. */
function termCount(sharding) { return sharding.partial.reduce((count, {axis}) => count * sharding.axes[axis], 1); }
function termNumber(sharding, rank) {
  return indexAlong(sharding, sharding.partial.map(({axis}) => axis), coordinatesOf(sharding, rank));
}

/** Largest local size of each dimension over all ranks. */
function capacityOf(sharding, shape) { return shape.map((size, dim) => Math.ceil(size / piecesOf(sharding, dim))); }

/** Equal copies of each piece (of each term). */
function copyCount(sharding, devices) { return devices / pieceCount(sharding) / termCount(sharding); }
