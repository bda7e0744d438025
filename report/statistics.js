// Arithmetic over columns and over intervals of time. A null is a missing value, and counts nowhere.

function sum(values) {
  return (values ?? []).reduce((total, value) => total + (isNumber(value) ? value : 0), 0);
}

function quantile(values, share) {
  const known = (values ?? []).filter(isNumber).sort((a, b) => a - b);
  if (known.length === 0) return null;
  const place = share * (known.length - 1), below = Math.floor(place);
  return known[below] + (known[Math.ceil(place)] - known[below]) * (place - below);
}

const median = (values) => quantile(values, 0.5);

/** Math.max(...values) has a limit on how many there may be. */
const most = (values) => (values ?? []).reduce((top, value) =>
  (isNumber(value) && (top === null || value > top) ? value : top), null);

function last(values) {
  for (let i = (values ?? []).length - 1; i >= 0; --i) if (isNumber(values[i])) return values[i];
  return null;
}

function ratio(part, whole) {
  return isNumber(part) && isNumber(whole) && whole > 0 ? part / whole : null;
}

/** Sorted intervals [begin, end] that do not touch, which cover the same time. */
function union(intervals) {
  const merged = [];
  for (const [begin, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    const before = merged[merged.length - 1];
    if (before && begin <= before[1]) before[1] = Math.max(before[1], end);
    else merged.push([begin, end]);
  }
  return merged;
}

/** What of one interval lies within a union, and what outside of it. */
function splitBy([begin, end], cover) {
  const inside = [], outside = [];
  let at = begin;
  for (const [from, to] of cover) {
    const first = Math.max(from, begin), past = Math.min(to, end);
    if (past <= first) continue;
    if (first > at) outside.push([at, first]);
    inside.push([first, past]);
    at = past;
  }
  if (at < end) outside.push([at, end]);
  return {inside, outside};
}

const lengthOf = (intervals) => intervals.reduce((total, [begin, end]) => total + end - begin, 0);
const lengthWithin = (intervals, cover) => intervals.reduce((total, one) => total + lengthOf(splitBy(one, cover).inside), 0);
