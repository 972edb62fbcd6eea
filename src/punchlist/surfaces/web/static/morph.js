// Makes an element like another one with as few changes as possible, so that focus, scroll position, selections,
// opened details and half-written forms stay as they are.

import { isChanged } from "./drafts.js";

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id : "");

// Fields that keep what the person wrote, and the `was-` fields with what they showed before.
let kept = new Set();

export function morph(live, next) {
  const focused = document.activeElement;
  kept = new Set([...live.querySelectorAll("input, textarea, select")].filter((field) => field === focused || isChanged(field)));
  for (const field of [...kept]) {
    const was = field.form?.elements[`was-${field.name}`];
    if (was) kept.add(was);
  }
  morphChildren(live, next);
  if (focused && focused !== document.body && document.activeElement !== focused && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

function morphElement(live, next) {
  // A script of the page fills it.
  if (live.hasAttribute("data-own")) return;
  if (kept.has(live) && (live.value !== next.value || live.checked !== next.checked)) return;
  morphAttributes(live, next);
  morphChildren(live, next);
  // Attributes and children of a field that was changed before do not change its value.
  if (live.type === "checkbox" || live.type === "radio") live.checked = next.checked;
  else if (/^(INPUT|TEXTAREA|SELECT)$/.test(live.nodeName) && live.value !== next.value) live.value = next.value;
}

// Space between elements is neither matched nor removed.
const isBlank = (node) => node.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();

function following(node) {
  let found = node;
  while (found && isBlank(found)) found = found.nextSibling;
  return found;
}

function morphChildren(live, next) {
  const keyed = new Map();
  const free = [];
  for (const child of live.childNodes) {
    if (keyOf(child)) keyed.set(keyOf(child), child);
    else if (!isBlank(child)) free.push(child);
  }
  const kept = new Set();
  let current = following(live.firstChild);
  for (const wanted of next.childNodes) {
    if (isBlank(wanted)) continue;
    const key = keyOf(wanted);
    const found = key ? keyed.get(key) : take(free, wanted);
    if (!found || found.nodeName !== wanted.nodeName) {
      kept.add(live.insertBefore(document.importNode(wanted, true), current));
      continue;
    }
    kept.add(found);
    if (found === current) current = following(current.nextSibling);
    else move(live, found, current);
    if (found.nodeType === Node.ELEMENT_NODE) morphElement(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  for (const child of [...live.childNodes]) if (!kept.has(child) && !isBlank(child)) child.remove();
}

// The first node of the same kind and class, else of the same kind.
function take(free, wanted) {
  let index = free.findIndex((node) => node.nodeName === wanted.nodeName && node.className === wanted.className);
  if (index < 0) index = free.findIndex((node) => node.nodeName === wanted.nodeName);
  return index < 0 ? null : free.splice(index, 1)[0];
}

function move(parent, node, before) {
  if (parent.moveBefore && node.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function morphAttributes(live, next) {
  for (const { name, value } of next.attributes) if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  for (const { name } of [...live.attributes]) {
    if (next.hasAttribute(name) || (name === "open" && /^(DETAILS|DIALOG)$/.test(live.nodeName))) continue;
    // A heading that a script has focused would lose the focus.
    if (name === "tabindex" && live === document.activeElement) continue;
    live.removeAttribute(name);
  }
}
