// Sends forms without leaving the page. Without this script they work by a redirect.

import { isChanged } from "./drafts.js";
import { focusAfter } from "./focus.js";
import { refresh, written } from "./live.js";

const TOLD = "told";

export function toast(text, failed = false) {
  const box = document.createElement("div");
  box.className = failed ? "toast failed" : "toast";
  const said = document.createElement("span");
  // Every second part was between backticks.
  said.append(...text.split("`").map((part, at) => (at % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part)));
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Dismiss" });
  close.addEventListener("click", () => box.remove());
  box.append(said, close);
  document.querySelector(".toasts").append(box);
  setTimeout(() => box.remove(), failed ? 20000 : 6000);
}

// Shown by the page that the browser opens next.
function toastOnNextPage(answer) {
  if (answer.message) sessionStorage.setItem(TOLD, JSON.stringify([answer.message, answer.warning]));
}

function showToldBefore() {
  const told = sessionStorage.getItem(TOLD);
  sessionStorage.removeItem(TOLD);
  if (told) toast(...JSON.parse(told));
}

// Contents that were sent and not answered, with the ids under which they were sent: sent again, each is done once.
const unanswered = new Map();

export async function send(url, fields) {
  const body = new URLSearchParams(fields);
  if (!body.has("csrf")) body.set("csrf", document.body.dataset.csrf);
  body.delete("requestId");
  const content = `${url} ${body}`;
  if (!unanswered.has(content)) unanswered.set(content, crypto.randomUUID());
  body.set("requestId", unanswered.get(content));
  let response;
  try {
    response = await fetch(url, { method: "POST", body, headers: { Accept: "application/json" } });
  } catch {
    throw new Error("The server did not answer. Send it again: what it has received is not done twice.");
  }
  if (response.status < 500) unanswered.delete(content);
  const answer = await response.json().catch(() => ({}));
  written();
  if (!response.ok) throw new Error(answer.detail || `The server answered ${response.status}.`);
  return answer;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-enhance]") || event.defaultPrevented) return;
  event.preventDefault();
  const { submitter } = event;
  const buttons = form.querySelectorAll("button");
  const fields = new FormData(form, submitter);
  const changed = [...form.elements].filter((field) => field.name && isChanged(field)).map((field) => field.name);
  const moveFocus = focusAfter(form, submitter);
  for (const button of buttons) button.disabled = true;
  unmark(form);
  try {
    // Not `form.action`: a field of that name would hide it.
    const answer = await send(form.getAttribute("action"), fields);
    const here = new URL(answer.to, location.href);
    form.reset();
    if (form.hasAttribute("data-leave") && here.href !== location.href) {
      toastOnNextPage(answer);
      return location.assign(here);
    }
    if (answer.message) toast(answer.message, answer.warning);
    form.closest("details.action")?.removeAttribute("open");
    await refresh();
    for (const button of buttons) button.disabled = false;
    moveFocus();
    if (form.hasAttribute("data-edit")) showChanged(form, changed);
  } catch (error) {
    for (const button of buttons) button.disabled = false;
    if (!markField(form, error.message)) {
      toast(error.message, true);
      submitter?.focus({ preventScroll: true });
    }
  }
});

// What an edit has changed, in the text beside its form.
function showChanged(form, names) {
  const panel = form.closest(".panel, .drawer");
  const places = names.map((name) => panel?.querySelector(`[data-field="${CSS.escape(name)}"]`)).filter(Boolean);
  places[0]?.scrollIntoView({ block: "nearest" });
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  // Not by a class: the next refresh of the page would remove it.
  const lit = { backgroundColor: "var(--warn-tint)", boxShadow: "0 0 0 6px var(--warn-tint)" };
  const off = { backgroundColor: "transparent", boxShadow: "0 0 0 6px transparent" };
  for (const place of places) place.animate([lit, lit, off], { duration: 2400, easing: "ease-out" });
}

// --- errors at their fields -------------------------------------------------------------------------------

// `name: what is wrong` is shown at the field with that name or label.
function markField(form, message) {
  const [, name, problem] = /^([^:\n]{1,60}): ([^\n]+)$/.exec(message) ?? [];
  const labelOf = (field) => field.labels?.[0]?.firstChild?.textContent.trim() ?? "";
  const field = name && [...form.elements].find((each) => each.checkVisibility?.() && (each.name === name || labelOf(each) === name));
  if (!field || field.type === "hidden" || field.nodeName === "BUTTON") return false;
  const note = Object.assign(document.createElement("span"), { className: "error-text small", textContent: problem[0].toUpperCase() + problem.slice(1) });
  note.id = `${field.id || field.name}-problem`;
  note.setAttribute("role", "alert");
  field.after(note);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", note.id);
  field.focus();
  return true;
}

function unmark(form) {
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    document.getElementById(field.getAttribute("aria-describedby"))?.remove();
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

showToldBefore();
