// The board: drag a card or press `m`, give the reason that the action needs, and see it move at once.

import { isTextField } from "./drafts.js";
import { send, toast } from "./forms.js";
import { refresh } from "./live.js";

const board = () => document.querySelector("[data-board]");
const moves = (status) => JSON.parse(board().dataset.moves)[status] ?? [];
const dialog = document.querySelector("#move");
let dragged = null;
let undo = null;
let options = [];

const columns = () => [...board().querySelectorAll(".column")];

document.addEventListener("dragstart", (event) => {
  const card = event.target.closest?.("[data-todo]");
  if (!card) return;
  dragged = card;
  card.classList.add("dragged");
  event.dataTransfer.setData("text/plain", card.dataset.title);
  event.dataTransfer.effectAllowed = "move";
  for (const column of columns()) {
    const move = moves(card.dataset.status).find((each) => each.to === column.dataset.status);
    if (!move) continue;
    column.classList.add(move.whyNot ? "drop-no" : "drop-ok");
    column.querySelector("[data-drop-note]").textContent = move.whyNot || `${move.label}: drop here`;
  }
});

document.addEventListener("dragover", (event) => {
  if (dragged && event.target.closest?.(".column.drop-ok")) {
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
  }
});

document.addEventListener("drop", (event) => {
  const column = event.target.closest?.(".column.drop-ok");
  if (!dragged || !column) return;
  event.preventDefault();
  ask(dragged, column.dataset.status);
});

document.addEventListener("dragend", () => {
  dragged?.classList.remove("dragged");
  dragged = null;
  for (const column of columns()) column.classList.remove("drop-ok", "drop-no");
});

// --- the dialog ---------------------------------------------------------------------------------------------

function ask(card, target) {
  options = moves(card.dataset.status);
  const first = target ?? options.find((move) => !move.whyNot)?.to;
  if (!first) return toast(options[0]?.whyNot ?? "This todo cannot move.", true);
  dialog.dataset.todo = card.dataset.todo;
  dialog.querySelector("[data-move-todo]").textContent = card.dataset.title;
  dialog.querySelector("[data-move-error]").textContent = "";
  dialog.querySelector("[data-move-options]").replaceChildren(
    ...options.map((move) => option(move, move.to === first)),
  );
  if (target) draw(card, target);
  describe();
  dialog.showModal();
  const reason = dialog.querySelector("textarea");
  if (target) reason.focus();
  else dialog.querySelector("input[type=radio]:checked").focus();
}

function option(move, checked) {
  const label = document.createElement("label");
  label.className = "check";
  const input = Object.assign(document.createElement("input"), {
    type: "radio", name: "to", value: move.to, checked, disabled: Boolean(move.whyNot),
  });
  const text = document.createElement("span");
  text.textContent = move.to.replace("_", " ");
  const note = document.createElement("span");
  note.className = "muted small";
  note.textContent = move.whyNot || move.label;
  label.append(input, text, note);
  return label;
}

// Of the moves that were offered, although the card may have been moved by others since.
const chosen = () => {
  const to = dialog.querySelector("input[name=to]:checked").value;
  return options.find((move) => move.to === to);
};

function describe() {
  const move = chosen();
  dialog.querySelector("#move-title").textContent = move.label;
  dialog.querySelector("[data-move-submit]").textContent = move.label;
  dialog.querySelector("[data-move-label]").textContent = move.needs === "outcome" ? "What was done" : "Reason";
}

// Shows the card in its new column before the server has confirmed it.
function draw(card, to) {
  undo = { card, status: card.dataset.status, parent: card.parentNode, next: card.nextSibling };
  document.querySelector(`#column-${to} .cards`).prepend(card);
  card.dataset.status = to;
  for (const [status, step] of [[undo.status, -1], [to, 1]]) {
    const count = document.querySelector(`#column-${status} [data-count]`);
    count.textContent = Number(count.textContent) + step;
  }
}

function revert() {
  dialog.querySelector("form").reset();
  if (!undo) return;
  undo = null;
  refresh();
}

dialog?.addEventListener("change", describe);
dialog?.addEventListener("close", revert);
dialog?.querySelector("[data-close-dialog]").addEventListener("click", () => dialog.close());
dialog?.querySelector("textarea").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    dialog.querySelector("form").requestSubmit();
  }
});
dialog?.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const move = chosen();
  const card = document.querySelector(`#card-${CSS.escape(dialog.dataset.todo)}`);
  if (!undo && card) draw(card, move.to);
  const text = dialog.querySelector("textarea").value;
  const started = performance.now();
  try {
    const answer = await send(`/todos/${dialog.dataset.todo}/${move.action}`, { [move.needs]: text });
    board().dataset.confirmed = Math.round(performance.now() - started);
    undo = null;
    dialog.close();
    if (answer.message) toast(answer.message, answer.warning);
    await refresh();
    document.querySelector(`#card-${CSS.escape(dialog.dataset.todo)} a`)?.focus({ preventScroll: true });
  } catch (error) {
    dialog.querySelector("[data-move-error]").textContent = error.message;
  }
});

// --- keys ---------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (!board() || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const card = document.activeElement?.closest?.("[data-todo]");
  if (isTextField(document.activeElement)) {
    // The first Esc leaves the field, the second one the drawer.
    if (event.key === "Escape" && !event.isComposing) document.activeElement.blur();
    return;
  }
  if (event.key === "Escape") return clearPicked() || document.querySelector("[data-close-drawer]")?.click();
  if (!card && !event.key.startsWith("Arrow")) return;
  if (event.key === "m") ask(card);
  else if (event.key === "x") card.querySelector(".pick")?.click();
  else if (event.key.startsWith("Arrow") && (card || document.activeElement === document.body)) step(card, event.key);
  else return;
  event.preventDefault();
});

function step(card, key) {
  const lists = columns().map((column) => [...column.querySelectorAll("[data-todo]")]);
  const x = card ? lists.findIndex((cards) => cards.includes(card)) : lists.findIndex((cards) => cards.length);
  const y = card ? lists[x].indexOf(card) : -1;
  let target;
  if (!card) target = lists[x]?.[0];
  else if (key === "ArrowDown") target = lists[x][y + 1];
  else if (key === "ArrowUp") target = lists[x][y - 1];
  else {
    const side = key === "ArrowRight" ? 1 : -1;
    for (let at = x + side; lists[at] && !target; at += side) target = lists[at][Math.min(y, lists[at].length - 1)];
  }
  target?.querySelector("a").focus();
}

// --- selection --------------------------------------------------------------------------------------------

const bulk = document.querySelector("[data-bulk]");
function countPicked() {
  const picked = document.querySelectorAll(".pick:checked").length;
  if (bulk) {
    bulk.hidden = !picked;
    bulk.querySelector("[data-bulk-count]").textContent = `${picked} selected`;
  }
  board()?.classList.toggle("picking", picked > 0);
}
document.addEventListener("change", (event) => event.target.matches(".pick") && countPicked());
document.addEventListener("refreshed", countPicked);
// Whether there was something to clear.
function clearPicked() {
  const picked = [...document.querySelectorAll(".pick:checked")];
  for (const box of picked) box.checked = false;
  countPicked();
  return picked.length > 0;
}
bulk?.addEventListener("reset", clearPicked);
bulk?.querySelector("[data-bulk-clear]").addEventListener("click", () => {
  const first = document.querySelector(".pick:checked")?.closest("[data-todo]");
  bulk.reset();
  first?.querySelector("a").focus({ preventScroll: true });
});
countPicked();
