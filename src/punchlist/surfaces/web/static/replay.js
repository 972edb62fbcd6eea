// The history of a list: the slider shows the list while it moves, “Play” goes through the changes.

import { visit } from "./live.js";

const STEP = 700;
let waiting;
let playing;

function show(slider) {
  const url = new URL(location.href);
  url.searchParams.set("at", slider.value);
  url.searchParams.delete("time");
  history.replaceState(null, "", url);
  return visit(url, { push: false });
}

document.addEventListener("input", (event) => {
  if (event.target.id !== "moment") return;
  stop();
  clearTimeout(waiting);
  waiting = setTimeout(() => show(event.target), 60);
});

// A slider that the person has moved keeps its value and its end when the page is refreshed.
document.addEventListener("refreshed", () => {
  const slider = document.querySelector("#moment");
  if (!slider) return;
  slider.max = slider.form.dataset.newest;
  if (slider !== document.activeElement) slider.value = slider.form.dataset.at;
});

const button = () => document.querySelector("[data-play]");

async function play() {
  const slider = document.querySelector("#moment");
  if (playing && Number(slider.value) < Number(slider.max)) {
    slider.value = Number(slider.value) + 1;
    await show(slider);
    if (playing) playing = setTimeout(play, STEP);
  } else stop();
}

function stop() {
  clearTimeout(playing);
  playing = null;
  const shown = button();
  if (shown) shown.setAttribute("aria-label", (shown.title = "Play"));
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-play]")) return;
  if (playing) return stop();
  const slider = document.querySelector("#moment");
  if (slider.value === slider.max) slider.value = 0;
  playing = true;
  button().setAttribute("aria-label", (button().title = "Pause"));
  play();
});
