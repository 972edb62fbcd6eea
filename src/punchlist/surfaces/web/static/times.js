// Times: how long ago, and clock times in the time zone of the browser instead of UTC.

const units = [[86400, "d"], [3600, "h"], [60, "min"]];
const unitOf = (seconds) => units.find(([each]) => seconds >= each) ?? [1, "s"];
const span = (seconds) => {
  const [size, unit] = unitOf(seconds);
  return `${Math.floor(seconds / size)} ${unit}`;
};
const two = (number) => String(number).padStart(2, "0");
const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
const forms = {
  ago(at) {
    const seconds = (Date.now() - at) / 1000;
    return seconds <= -60 ? `in ${span(-seconds)}` : seconds < 60 ? "just now" : `${span(seconds)} ago`;
  },
  clock,
  day,
  // A duration until now, as the server writes it.
  since(at) {
    const seconds = Math.max((Date.now() - at) / 1000, 0);
    const [size, unit] = unitOf(seconds);
    const count = seconds / size;
    return `${count < 9.95 && size > 1 ? count.toFixed(1).replace(".0", "") : Math.round(count)} ${unit}`;
  },
  moment: (at) => `${day(at)} ${clock(at)}`,
};

// For every part of a page before it is shown, so that no time changes under the reader's eyes.
export function showTimes(part, kind = "") {
  for (const time of part.querySelectorAll(kind ? `time[data-time=${kind}]` : "time[data-time]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = forms[time.dataset.time](at);
    if (time.textContent !== text) time.textContent = text;
    time.title = `${day(at)} ${clock(at)}, ${time.dateTime.slice(11, 19)} UTC`;
  }
}

// A form whose time zone was not chosen yet starts with that of the browser.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const field of document.querySelectorAll("input[data-time-zone]")) {
  if (zone && field.value === field.defaultValue) field.value = field.defaultValue = zone;
}

showTimes(document);
setInterval(() => showTimes(document, "ago"), 20000);
setInterval(() => showTimes(document, "since"), 1000);
