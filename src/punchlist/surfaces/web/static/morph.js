// Makes an element like another one with as few changes as possible, so that focus, scroll position, selections,
// opened details and half-written forms stay as they are.

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id : "");

export function morph(live, next) {
  const focused = document.activeElement;
  morphChildren(live, next);
  if (focused && focused !== document.body && document.activeElement !== focused && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

function morphElement(live, next) {
  morphAttributes(live, next);
  if (isField(live)) {
    morphField(live, next);
    if (live.nodeName !== "SELECT") return;
  }
  morphChildren(live, next);
}

function morphChildren(live, next) {
  const keyed = new Map();
  for (const child of live.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let current = live.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let found = key ? keyed.get(key) : null;
    if (!found && !key) {
      // The next sibling without a key and of the same kind; keyed ones in between move or go later.
      let candidate = current;
      while (candidate && keyOf(candidate)) candidate = candidate.nextSibling;
      if (candidate && candidate.nodeName === wanted.nodeName) found = candidate;
    }
    if (!found || found.nodeName !== wanted.nodeName) {
      live.insertBefore(document.importNode(wanted, true), current);
      continue;
    }
    keyed.delete(key);
    if (found === current) current = current.nextSibling;
    else move(live, found, current);
    if (found.nodeType === Node.ELEMENT_NODE) morphElement(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  while (current) {
    const following = current.nextSibling;
    current.remove();
    current = following;
  }
  for (const [key, node] of keyed) if (node.parentNode === live && !next.querySelector?.(`:scope > #${CSS.escape(key)}`)) removeStale(node, next);
}

// Nodes before the last matched one that the new version no longer has.
function removeStale(node, next) {
  const key = keyOf(node);
  for (const child of next.childNodes) if (keyOf(child) === key) return;
  node.remove();
}

function move(parent, node, before) {
  if (parent.moveBefore && node.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function morphAttributes(live, next) {
  for (const { name, value } of next.attributes) if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  for (const { name } of [...live.attributes]) {
    if (next.hasAttribute(name) || (name === "open" && /^(DETAILS|DIALOG)$/.test(live.nodeName))) continue;
    live.removeAttribute(name);
  }
}

const isField = (node) => /^(INPUT|TEXTAREA|SELECT)$/.test(node.nodeName);

function morphField(live, next) {
  // A field that the person has changed or is in keeps its value.
  if (document.activeElement === live) return;
  if (live.type === "checkbox" || live.type === "radio") return;
  if (live.nodeName === "TEXTAREA") {
    if (live.value === live.defaultValue) live.value = live.defaultValue = next.defaultValue;
  } else if (live.nodeName === "INPUT" && live.value === live.defaultValue) {
    live.value = next.getAttribute("value") ?? "";
  }
}
