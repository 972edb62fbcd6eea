// What every page has: keys, search, theme, sidebar.

import "./live.js";
import { openChat } from "./chat.js";
import { isTextField } from "./drafts.js";
import { toast } from "./forms.js";
import { showTimes } from "./times.js";

const root = document.documentElement;
const body = document.body;

// --- theme and sidebar --------------------------------------------------------------------------------------

const themes = ["system", "light", "dark"];
function showTheme() {
  document.querySelector("[data-theme-name]").textContent = root.dataset.theme ?? "system";
}
document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const next = themes[(themes.indexOf(root.dataset.theme ?? "system") + 1) % themes.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  localStorage.setItem("theme", next);
  showTheme();
});
showTheme();

const sidebar = document.querySelector("#sidebar");
function fold() {
  localStorage.setItem("folded", root.classList.toggle("folded") ? "yes" : "no");
}
document.querySelector("[data-fold]").addEventListener("click", () =>
  sidebar.classList.contains("open") ? showMenu(false) : fold(),
);
const menu = document.querySelector("[data-menu]");
function showMenu(open) {
  sidebar.classList.toggle("open", open);
  menu.setAttribute("aria-expanded", open);
  if (open) sidebar.querySelector("a").focus();
}
menu.addEventListener("click", () => showMenu(!sidebar.classList.contains("open")));
document.addEventListener("click", (event) => {
  if (sidebar.classList.contains("open") && !sidebar.contains(event.target) && !menu.contains(event.target)) showMenu(false);
});

// --- search -------------------------------------------------------------------------------------------------

const palette = document.querySelector("#palette");
const query = palette.querySelector("input");
const results = palette.querySelector(".results");
let asked = 0;

function openPalette() {
  palette.showModal();
  query.select();
  search();
}
async function search() {
  const number = ++asked;
  const mission = location.pathname.match(/^\/missions\/([^/]+)/)?.[1] ?? "";
  let response, html;
  try {
    response = await fetch(`/search?${new URLSearchParams({ q: query.value, mission })}`, { headers: { Fragment: "live" } });
    html = await response.text();
  } catch {
    if (number === asked) results.textContent = "The server cannot be reached.";
    return;
  }
  if (number !== asked || !response.ok) return;
  const found = document.createRange().createContextualFragment(html);
  showTimes(found);
  const shown = [...found.querySelectorAll("[data-result], [data-result-group]")];
  for (const each of shown.filter((one) => one.matches("[data-result-group]"))) each.setAttribute("role", "presentation");
  results.replaceChildren(...shown);
  if (!choices().length) results.textContent = "Nothing found.";
  for (const choice of choices()) choice.setAttribute("role", "option");
  select(0);
}
const choices = () => [...results.querySelectorAll("a, button")];
function select(index) {
  const all = choices();
  all.forEach((choice, at) => choice.setAttribute("aria-selected", at === index));
  (index ? all[index] : results.firstElementChild)?.scrollIntoView({ block: "nearest" });
}
let waiting;
query.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 80);
});
query.addEventListener("keydown", (event) => {
  const all = choices();
  const at = all.findIndex((choice) => choice.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") select(Math.min(at + 1, all.length - 1));
  else if (event.key === "ArrowUp") select(Math.max(at - 1, 0));
  else if (event.key === "Enter") all[at]?.click();
  // Else the first Esc would only empty the field.
  else if (event.key === "Escape") palette.close();
  else return;
  event.preventDefault();
});
palette.addEventListener("click", (event) => event.target === palette && palette.close());
palette.addEventListener("submit", () => palette.close());
results.addEventListener("click", (event) => {
  // A link to another part of this page loads nothing.
  const link = event.target.closest("a");
  if (link && new URL(link.href).pathname === location.pathname) palette.close();
});
document.querySelector("[data-palette]").addEventListener("click", (event) => {
  event.preventDefault();
  openPalette();
});

// --- keys ---------------------------------------------------------------------------------------------------

const sheet = document.querySelector("#keys");
document.querySelector("[data-keys]")?.addEventListener("click", () => sheet.showModal());
// The mission of this page, else the one that this browser showed last, else the first one.
const missions = [...sidebar.querySelectorAll("[data-mission-link]")].map((link) => link.dataset.missionLink);
if (body.dataset.mission) localStorage.setItem("mission", body.dataset.mission);
const recent = [body.dataset.mission, localStorage.getItem("mission")];
const mission = recent.find((slug) => missions.includes(slug)) ?? body.dataset.mission ?? missions[0];
const keyLinks = {
  ga: "/",
  gb: mission ? `/missions/${mission}/board` : "/missions/new",
  gm: mission ? `/missions/${mission}` : "/missions/new",
  gc: "/conversations",
  gr: "/runs",
  c: body.hasAttribute("data-can-write") && (mission ? `/missions/${mission}/new` : "/missions/new"),
};
let prefix = "";
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return palette.open ? palette.close() : openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTextField(document.activeElement)) return;
  const to = keyLinks[prefix + event.key];
  prefix = event.key === "g" ? "g" : "";
  if (to) location.assign(to);
  else if (event.key === "?") sheet.showModal();
  else if (event.key === "[") fold();
  else if (event.key === "Escape" && sidebar.classList.contains("open")) showMenu(false);
  else {
    const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!target) return;
    event.preventDefault();
    if (target.nodeName === "A") target.click();
    else target.focus();
  }
});

// --- places of the page -------------------------------------------------------------------------------------

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
document.querySelector("details:target")?.setAttribute("open", "");
addEventListener("hashchange", () => document.querySelector("details:target")?.setAttribute("open", ""));

// --- parts of single pages ----------------------------------------------------------------------------------

if (document.querySelector("[data-board]")) import("./board.js");
if (document.querySelector("[data-filter]")) import("./filters.js");
if (document.querySelector("[data-moment]")) import("./replay.js");
const chat = document.querySelector("[data-chat]");
// Not imported later: the first text arrives as soon as the event stream is open.
if (chat) openChat(chat);
for (const input of document.querySelectorAll("input[type=file][data-into]")) {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    if (file.size > 200_000) return toast("The file is larger than 200 kB.", true);
    document.querySelector(input.dataset.into).value = await file.text();
  });
}
if (document.querySelector("[data-push]")) import("./push.js");
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/service-worker.js").catch(() => {});
body.classList.add("ready");
performance.mark("ready");
