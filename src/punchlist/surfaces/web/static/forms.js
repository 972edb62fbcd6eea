// Sends forms without leaving the page. Without this script they work by a redirect.

import { refresh, written } from "./live.js";

export function toast(text, failed = false) {
  const box = document.createElement("div");
  box.className = failed ? "toast failed" : "toast";
  box.append(Object.assign(document.createElement("span"), { textContent: text }));
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Dismiss" });
  close.addEventListener("click", () => box.remove());
  box.append(close);
  document.querySelector(".toasts").append(box);
  setTimeout(() => box.remove(), failed ? 20000 : 6000);
}

export async function send(url, fields) {
  const body = new URLSearchParams(fields);
  if (!body.has("csrf")) body.set("csrf", document.body.dataset.csrf);
  let response;
  try {
    response = await fetch(url, { method: "POST", body, headers: { Accept: "application/json" } });
  } catch {
    throw new Error("The server cannot be reached. Nothing was changed.");
  }
  const answer = await response.json().catch(() => ({}));
  written();
  if (!response.ok) throw new Error(answer.detail || `The server answered ${response.status}.`);
  return answer;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-enhance]") || event.defaultPrevented) return;
  event.preventDefault();
  const buttons = form.querySelectorAll("button");
  const fields = new FormData(form, event.submitter);
  for (const button of buttons) button.disabled = true;
  try {
    // Not `form.action`: a field of that name would hide it.
    const answer = await send(form.getAttribute("action"), fields);
    if (answer.message) toast(answer.message, answer.warning);
    const here = new URL(answer.to, location.href);
    form.reset();
    if (form.hasAttribute("data-leave") && here.href !== location.href) return location.assign(here);
    form.closest("details.action")?.removeAttribute("open");
    await refresh();
  } catch (error) {
    toast(error.message, true);
  } finally {
    for (const button of buttons) button.disabled = false;
  }
});
