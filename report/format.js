// Numbers as text: one place for digits, units and what is said when a number is missing.

const MISSING = "–";
const SPACE = "\u00a0"; // between a number and its unit, where a line must not break
const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Four significant digits, or an exponent where zeros would hide them. */
function formatNumber(value, significant = 4) {
  if (!isNumber(value)) return MISSING;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e12)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  if (size >= 1e4) return Math.round(value).toLocaleString("en-US");
  return value.toLocaleString("en-US", {maximumSignificantDigits: significant});
}

/** Short enough for an axis. */
function formatTick(value) {
  if (!isNumber(value)) return "";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-2) return value.toExponential(1).replace(".0e", "e");
  if (size < 1e4) return String(Number(value.toPrecision(6)));
  return value.toLocaleString("en-US", {notation: "compact", maximumSignificantDigits: 3});
}

function formatMs(value) {
  if (!isNumber(value)) return MISSING;
  if (Math.abs(value) >= 10000) return formatNumber(value / 1000, 3) + SPACE + "s";
  if (value !== 0 && Math.abs(value) < 0.1) return formatNumber(value * 1000, 3) + SPACE + "µs";
  const size = Math.abs(value);
  return (size >= 100 ? formatNumber(Math.round(value)) : value.toFixed(size >= 10 ? 1 : 2)) + SPACE + "ms";
}

function formatBytes(value) {
  if (!isNumber(value)) return MISSING;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < BINARY_UNITS.length) {
    value /= 1024;
    ++unit;
  }
  return formatNumber(value, 3) + SPACE + BINARY_UNITS[unit];
}

/** A share of 1; never "100 %" of what is not all, nor "0 %" of what is something. */
function formatShare(share) {
  if (!isNumber(share)) return MISSING;
  const percent = share * 100;
  if (percent > 99 && percent < 100) return "99" + SPACE + "%";
  if (percent > 0 && percent < 1) return percent.toPrecision(1) + SPACE + "%";
  return Math.round(percent) + SPACE + "%";
}

function formatDuration(seconds) {
  if (!isNumber(seconds)) return MISSING;
  if (seconds < 60) return formatNumber(seconds, 3) + SPACE + "s";
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  if (hours > 0) return `${hours}${SPACE}h${SPACE}${minutes}${SPACE}min`;
  return `${minutes}${SPACE}min${SPACE}${whole % 60}${SPACE}s`;
}

/** A value of the configuration: as it is written there, but for sizes and large numbers. */
function formatSetting(key, value) {
  if (value === null || value === undefined) return MISSING;
  if (isNumber(value) && key.endsWith("_bytes")) return formatBytes(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function countOf(count, noun) {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}
