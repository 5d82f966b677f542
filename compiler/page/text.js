// Elements and numbers with units. Texts of the report reach the page as text nodes only, never as markup.

/** el("p", {class: "note", onclick: f}, "text", child, ...): a new element. */
function el(tag, attributes = {}, ...children) { return fill(document.createElement(tag), attributes, ...children); }

const svgSpace = "http://www.w3.org/2000/svg";
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, ...children);
}

function fill(element, attributes, ...children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
      ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function threeDigits(value) {
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en-US") :
                                                   Number(value.toPrecision(3)).toString();
}

/** What the headline says behind the network of a plan that does not fit; empty for others. */
function refusalText(limit) { return limit && !limit.fits ? ` does not fit into ${bytesText(limit.bytes)} per rank` : ""; }

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; Math.abs(bytes) >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return threeDigits(bytes) + " " + units[unit];
}

function timeText(us) {
  if (Math.abs(us) >= 1e6) return threeDigits(us / 1e6) + " s";
  if (Math.abs(us) >= 1e3) return threeDigits(us / 1e3) + " ms";
  return threeDigits(us) + " µs";
}

function countText(count, noun, nouns = noun + "s") {
  return count.toLocaleString("en-US") + " " + (count === 1 ? noun : nouns);
}

/** [[2, 4], [4, 1]] -> "((2, 4), (4, 1))", as networks write it. */
function tupleText(value) {
  if (!Array.isArray(value)) return String(value);
  return "(" + value.map(tupleText).join(", ") + ")";
}

function shapeText(shape) { return "(" + shape.join(", ") + ")"; }

/** "0, 1, 2, 3" or "0–3", or the first ones and how many more. */
function ranksText(ranks, most = 8) {
  const isRun = ranks.length > 2 && ranks.every((rank, i) => i === 0 || rank === ranks[i - 1] + 1);
  if (isRun) return ranks[0] + "–" + ranks.at(-1);
  return ranks.slice(0, most).join(", ") +
      (ranks.length > most ? ", … " + countText(ranks.length - most, "more", "more") : "");
}

function sumOf(list, figure) { return list.reduce((sum, item) => sum + figure(item), 0); }

/** Sums per key in order of first appearance: Map key -> {count, bytes, us}. */
function totalsBy(collectives, keyOf) {
  const totals = new Map();
  for (const collective of collectives) {
    const key = keyOf(collective);
    const total = totals.get(key) ?? {count: 0, bytes: 0, us: 0};
    totals.set(
        key, {count: total.count + 1, bytes: total.bytes + collective.bytes, us: total.us + collective.predicted_us});
  }
  return totals;
}

/** Hue and lightness of shard `index` of `count`: few are far apart on the circle, many alternate. */
function shardColour(index, count) {
  const hue = count <= 12 ? (210 + (index * 360) / Math.max(count, 1)) % 360 : (210 + index * 137.508) % 360;
  return {"--hue": hue.toFixed(1), "--shade": count <= 12 ? "0%" : ["0%", "-7%", "5%"][index % 3]};
}
