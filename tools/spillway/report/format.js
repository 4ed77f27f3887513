"use strict";
// Numbers as people read them, and names as harmless text.

// A finite number, or null for whatever else the data has in its place.
function number_of(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function list_of(value) {
  return Array.isArray(value) ? value : [];
}

// Three digits that count: 0.123, 1.23, 12.3, 123, 1,234.
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  const places = size >= 99.5 ? 0 : size >= 9.95 ? 1 : size >= 0.995 ? 2 : 3;
  return String(Number(value.toFixed(places)));
}

const byte_units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// The unit in which a chart of numbers up to `most` is drawn: {divisor, name}.
function byte_unit(most) {
  let index = 0;
  while (index + 1 < byte_units.length && most >= 1024 ** (index + 1)) ++index;
  return { divisor: 1024 ** index, name: byte_units[index] };
}

function count_unit(most) {
  if (most >= 1e9) return { divisor: 1e9, name: "G", word: "billion" };
  if (most >= 1e6) return { divisor: 1e6, name: "M", word: "million" };
  return most >= 1e4 ? { divisor: 1e3, name: "k", word: "thousand" } : { divisor: 1, name: "", word: "" };
}

function bytes(value) {
  const unit = byte_unit(Math.abs(value));
  const scaled = value / unit.divisor;
  if (unit.divisor === 1 || scaled >= 99.95) return `${Math.round(scaled)} ${unit.name}`;
  return `${scaled.toFixed(1)} ${unit.name}`;
}

function count(value) {
  const unit = count_unit(Math.abs(value));
  return unit.name ? `${digits(value / unit.divisor)} ${unit.name}` : digits(value);
}

function share(value) {
  const percent = value * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${percent > 0 && percent < 9.95 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

// Seconds: 8.2 s, 1 min 23 s, 3 h 05 min, 2 d 4 h.
function seconds(value) {
  if (value > 0 && value < 0.9995) return nanoseconds(value * 1e9);
  if (value < 59.95) return `${digits(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  const minutes = Math.round(value / 60),
    hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function nanoseconds(value) {
  if (value >= 999.5e6) return seconds(value / 1e9);
  if (value >= 999.5e3) return `${digits(value / 1e6)} ms`;
  return value >= 999.5 ? `${digits(value / 1e3)} µs` : `${digits(value)} ns`;
}

// A label on a time axis whose labels are `step` seconds apart.
function clock(value, step) {
  if (value === 0) return "0";
  if (step < 1) return `${Number(value.toFixed(3))} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value),
    two = (part) => String(part).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

// A moment of a run that took `whole` seconds: 12.3 s in a short one, 3:09:12 in a long one.
function moment(value, whole) {
  return whole < 120 ? seconds(value) : clock(value, 1);
}

// A text of the data as it may be shown: what a terminal would obey, and what turns the direction of writing round, is
// seen instead.
function shown(text) {
  return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, (mark) => {
    const code = mark.codePointAt(0);
    return code < 0x20
      ? String.fromCodePoint(0x2400 + code)
      : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A word of a shell command.
function shell_word(word) {
  const text = String(word);
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  // $'...' where a line break or another control character would spoil a copied line.
  if (/[\u0000-\u001f\u007f]/.test(text)) {
    const escaped = text
      .replace(/[\\']/g, "\\$&")
      .replace(/[\u0000-\u001f\u007f]/g, (mark) => `\\x${mark.charCodeAt(0).toString(16).padStart(2, "0")}`);
    return `$'${escaped}'`;
  }
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// A size as --memory takes it.
function size_option(size) {
  for (const [unit, name] of [
    [1024 ** 4, "T"],
    [1024 ** 3, "G"],
    [1024 ** 2, "M"],
    [1024, "K"],
  ])
    if (size >= unit && size % unit === 0) return `${size / unit}${name}`;
  return String(Math.ceil(size));
}

// Rounded up to a size that somebody would type.
function round_size(size) {
  const step =
    size >= 8 * 1024 ** 3
      ? 1024 ** 3
      : size >= 1024 ** 3
        ? 256 * 1024 ** 2
        : size >= 64 * 1024 ** 2
          ? 16 * 1024 ** 2
          : 1024 ** 2;
  return Math.ceil(size / step) * step;
}

const signal_names = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
};
