// Keeps the page current: an event from the server refreshes the live part of the page, at most one request at a time.

import { mayReplaceDrawer } from "./drafts.js";
import { follow } from "./events.js";
import { morph } from "./morph.js";
import { showTimes } from "./times.js";

const region = document.querySelector("[data-live]");
let running = null;
let following = null;
let writes = 0;

// A change of this page is confirmed: what was requested before does not show it.
export function written() {
  writes += 1;
}

// Resolves when the page shows what the server had at the time of the call.
export function refresh(url = location.href) {
  if (!running) return (running = load(url).finally(() => (running = null)));
  following ??= running.then(() => {
    following = null;
    return refresh();
  });
  return following;
}

async function load(url) {
  const before = writes;
  let response, html;
  try {
    response = await fetch(url, { headers: { Fragment: "live", Accept: "text/html" } });
    html = await response.text();
  } catch {
    // The page is being left, or the server is away: then the page refreshes when its events are back.
    return;
  }
  if (response.status === 401) return location.reload();
  // An error of a proxy is a page as well.
  if (!response.headers.has("Waiting")) return;
  if (writes !== before) return load(location.href);
  const next = document.createElement("div");
  next.append(document.createRange().createContextualFragment(html));
  showTimes(next);
  const statuses = new Map([...region.querySelectorAll("[data-todo]")].map((card) => [card.id, card.dataset.status]));
  morph(region, next);
  for (const card of region.querySelectorAll("[data-todo]")) {
    if (statuses.size && statuses.get(card.id) !== card.dataset.status) highlight(card);
  }
  const count = response.headers.get("Waiting");
  if (count !== null) showWaiting(Number(count));
  document.dispatchEvent(new CustomEvent("refreshed"));
}

function highlight(card) {
  card.classList.add("changed");
  card.addEventListener("animationend", () => card.classList.remove("changed"), { once: true });
}

function showWaiting(count) {
  for (const place of document.querySelectorAll("[data-inbox-count]")) {
    const shown = document.createElement("span");
    shown.className = "count";
    shown.textContent = count;
    place.replaceChildren(...(count ? [shown] : []));
  }
  navigator.setAppBadge?.(count).catch(() => {});
}

// Opens an address in the live part without leaving the page: the drawer, filters, "show more".
export async function visit(url, { push = true } = {}) {
  if (push) history.pushState(null, "", url);
  shownUrl = location.href;
  await refresh(url);
}

let shownUrl = location.href;
addEventListener("popstate", () => {
  if (mayReplaceDrawer(location.href)) visit(location.href, { push: false });
  else history.pushState(null, "", shownUrl);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-soft]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (new URL(link.href).pathname !== location.pathname) return;
  event.preventDefault();
  if (!mayReplaceDrawer(link.href)) return;
  const closing = link.hasAttribute("data-close-drawer");
  const card = new URLSearchParams(location.search).get("todo");
  visit(link.href).then(() => {
    if (closing) document.querySelector(`#card-${CSS.escape(card)} a`)?.focus();
    else document.querySelector("#drawer [data-close-drawer]")?.focus({ preventScroll: true });
  });
});

// --- events -------------------------------------------------------------------------------------------------

let timer;

// The first event is shown at once; a burst of them at most every `PAUSE` milliseconds.
const PAUSE = 200;
let shown = 0;
function changed() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = null;
    shown = performance.now();
    refresh();
  }, Math.max(20, shown + PAUSE - performance.now()));
}

function writing(piece) {
  document.dispatchEvent(new CustomEvent("live-text", { detail: piece }));
}

function showOffline(offline) {
  let bar = document.querySelector(".offline");
  if (offline && !bar) {
    bar = document.createElement("div");
    bar.className = "offline";
    bar.setAttribute("role", "status");
    bar.textContent = "No connection to the server. The page reconnects by itself.";
    document.body.append(bar);
  } else if (!offline) bar?.remove();
}

if (region && document.body.dataset.events) follow(document.body.dataset.events, { changed, text: writing, offline: showOffline });
