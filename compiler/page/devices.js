// Pictures of shards: the tensor cut into its pieces, and the devices coloured by the piece that they hold.

const mostCells = 64, mostPieces = 256, mostRanks = 4096;

/**
 * Rows and columns of the picture of a tensor: the last dimension that is cut goes to the right (a single one that is
 * not the last goes down), all others down.
 */
function pictureOf(sharding, shape) {
  const cut = shape.flatMap((_, dim) => (piecesOf(sharding, dim) > 1 ? [dim] : []));
  const isDown = cut.length === 1 && shape.length > 1 && cut[0] !== shape.length - 1;
  const across = isDown ? shape.length - 1 : cut.at(-1) ?? shape.length - 1;
  const down = isDown ? cut : cut.slice(0, -1);
  const columns = shape.length === 0 ? 1 : piecesOf(sharding, across);
  const height = down.length > 0 ? shape[down[0]] :
      shape.length > 1           ? shape[across === shape.length - 1 ? across - 1 : 0] :
                                   1;
  const ratio = shape.length === 0 ? 1 :
      shape.length === 1           ? 3.2 :
                                     Math.min(2.2, Math.max(0.5, Math.sqrt(shape[across] / Math.max(height, 1))));
  return {columns, count: pieceCount(sharding), ratio};
}

/** Rank lists per piece. */
function ranksOfPieces(sharding, devices) {
  const ranks = Array.from({length: pieceCount(sharding)}, () => []);
  for (let rank = 0; rank < Math.min(devices, mostRanks); ++rank) ranks[pieceNumber(sharding, rank)].push(rank);
  return ranks;
}

/** The tensor as a rectangle, its pieces coloured and labelled with the ranks that hold them. */
function tensorPicture(value, devices, size) {
  const sharding = parseSharding(value.sharding);
  const {columns, count, ratio} = pictureOf(sharding, value.shape);
  const width = Math.round(size * Math.min(1, Math.sqrt(ratio))),
        height = Math.round(Math.max(28, (size * Math.min(1, Math.sqrt(ratio))) / ratio));
  const box = el("div", {class: "picture", "--columns": Math.min(columns, count)});
  Object.assign(box.style, {width: width + "px", height: height + "px"});
  if (count > mostPieces) {
    box.append(el("span", {class: "piece", "--hue": 210, "--shade": "0%"}, count.toLocaleString("en-US") + " pieces"));
    box.style.setProperty("--columns", 1);
    return box;
  }
  const ranks = ranksOfPieces(sharding, devices);
  for (let piece = 0; piece < count; ++piece) {
    const text = ranksText(ranks[piece], 4);
    const fits = text.length * 6 < width / Math.min(columns, count) && height / Math.ceil(count / columns) >= 13;
    box.append(
        el("span", {class: "piece", ...shardColour(piece, count), title: "ranks " + ranksText(ranks[piece], 16)},
           fits ? text : ""));
  }
  return box;
}

/** ["0:8", "8:16"]: what a rank holds, per dimension. */
function boxTexts(box) { return box.map(({begin, end}) => begin + ":" + end); }

/** Columns of a grid of `count` cells: as the device matrix has them, as far as they fit. */
function gridColumns(axes, count, most) {
  let columns = 1;
  for (let axis = axes.length - 1; axis > 0 && columns * axes[axis] <= most; --axis) columns *= axes[axis];
  if (columns > 1 && columns < count && count / columns <= 8) return columns;
  for (columns = Math.min(most, count); columns > 4 && count % columns !== 0;) --columns;
  return columns;
}

/** Cells of {title, lines, colour}; widths follow the longest line. */
function cellGrid(cells, axes, width) {
  const longest =
      Math.max(6, ...cells.flatMap(({title, lines}) => [title.length, ...lines.map((line) => line.length)]));
  const isSmall = cells.length > 16;
  const most = Math.max(1, Math.min(8, Math.floor(width / (isSmall ? longest * 6.3 + 17 : longest * 7 + 20))));
  return el(
      "div", {class: "grid" + (isSmall ? " small" : ""), "--columns": gridColumns(axes, cells.length, most)},
      cells.map(
          ({title, lines, colour}) =>
              el("div", {class: "device", ...colour}, el("b", {}, title), lines.map((line) => el("span", {}, line)))));
}

/** The devices of a tensor: one cell per rank; of more than 64 one cell per piece (and term), with its ranks. */
function deviceGrid(value, devices, width) {
  const sharding = parseSharding(value.sharding);
  const terms = termCount(sharding), pieces = pieceCount(sharding);
  const describe = (rank) =>
      [...boxTexts(localBox(sharding, value.shape, rank)),
       ...(terms > 1 ? [`term ${termNumber(sharding, rank) + 1} of ${terms}`] : [])];
  const colour = (rank) => shardColour(pieceNumber(sharding, rank), pieces);
  if (devices <= mostCells) {
    const cells = Array.from(
        {length: devices}, (_, rank) => ({title: "rank " + rank, lines: describe(rank), colour: colour(rank)}));
    return cellGrid(cells, sharding.axes, width);
  }
  const holders = new Map();
  for (let rank = 0; rank < Math.min(devices, mostRanks); ++rank) {
    const key = pieceNumber(sharding, rank) * terms + termNumber(sharding, rank);
    if (!holders.has(key)) holders.set(key, []);
    holders.get(key).push(rank);
  }
  const cells =
      [...holders].sort(([a], [b]) => a - b).slice(0, mostCells).map(([, ranks]) => ({
                                                                       title: countText(ranks.length, "rank"),
                                                                       lines:
                                                                           [ranksText(ranks, 3), ...describe(ranks[0])],
                                                                       colour: colour(ranks[0])
                                                                     }));
  const grid = cellGrid(cells, [], width);
  const left = holders.size - cells.length;
  const notes = [
    left > 0 ? `and ${left.toLocaleString("en-US")} more pieces` : "",
    devices > mostRanks ?
        `of the first ${mostRanks.toLocaleString("en-US")} of ${devices.toLocaleString("en-US")} ranks` :
        ""
  ].filter(Boolean);
  return el("div", {}, grid, notes.length > 0 ? el("p", {class: "note"}, notes.join(", ")) : null);
}

/** The devices of a collective, coloured by group. */
function groupGrid(groups, devices, axes, width) {
  if (devices > mostCells)
    return el(
        "div", {class: "groups"},
        groups.slice(0, mostCells)
            .map(
                (group, i) =>
                    el("div", {class: "device", ...shardColour(i, groups.length)}, el("b", {}, "group " + i),
                       el("span", {}, ranksText(group, 12)))),
        groups.length > mostCells ? el("p", {class: "note"}, `and ${groups.length - mostCells} more groups`) : null);
  const groupOfRank = new Map(groups.flatMap((group, i) => group.map((rank) => [rank, i])));
  const cells = Array.from(
      {length: devices},
      (_, rank) => groupOfRank.has(rank) ?
          {
            title: "rank " + rank,
            lines: ["group " + groupOfRank.get(rank)],
            colour: shardColour(groupOfRank.get(rank), groups.length)
          } :
          {title: "rank " + rank, lines: ["not in it"], colour: {"--hue": 0, "--shade": "0%", class: "device none"}});
  return cellGrid(cells, axes, width);
}

/** In words: "dimension 0 cut into 2, dimension 1 cut into 4; 2 copies of each piece". */
function shardingSentence(value, devices) {
  const sharding = parseSharding(value.sharding);
  const cuts = value.shape.flatMap((_, dim) => {
    const pieces = piecesOf(sharding, dim);
    return pieces > 1 ? [`dimension ${dim} cut into ${pieces}`] : [];
  });
  const copies = copyCount(sharding, devices), terms = termCount(sharding);
  const kinds = [...new Set(sharding.partial.map(({kind}) => kind))].join(" and ");
  return [
    cuts.length > 0 ? cuts.join(", ") : "whole on every rank",
    terms > 1 ? `each rank holds one of ${terms} terms of a ${kinds} that is still to be completed` : "",
    copies > 1 && cuts.length + (terms > 1) > 0 ? countText(copies, "copy of each", "copies of each") : ""
  ].filter(Boolean)
      .join("; ");
}
