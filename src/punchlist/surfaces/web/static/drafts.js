// What a person has written into a form and not sent yet.

function shownValue(select) {
  const chosen = [...select.options].filter((option) => option.defaultSelected).at(-1) ?? select.options[0];
  return chosen?.value ?? "";
}

export function isChanged(field) {
  if (field.type === "hidden" || field.type === "submit" || field.nodeName === "BUTTON") return false;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.value !== (field.nodeName === "SELECT" ? shownValue(field) : field.defaultValue);
}

function hasDraft(place) {
  return [...(place?.querySelectorAll("form[method=post]") ?? [])].some((form) =>
    [...form.elements].some((field) => field.type !== "checkbox" && field.nodeName !== "FIELDSET" && isChanged(field)),
  );
}

export const isTextField = (node) =>
  /^(INPUT|TEXTAREA|SELECT)$/.test(node?.nodeName) && node.type !== "checkbox" && node.type !== "radio";

// Asks before a drawer with a draft is closed or replaced.
export function mayReplaceDrawer(to) {
  const drawer = document.querySelector("#drawer");
  const next = new URL(to, location.href);
  if (!drawer || (next.pathname === location.pathname && next.searchParams.get("todo") === drawer.dataset.drawerTodo)) return true;
  return !hasDraft(drawer) || confirm("Discard what you wrote about this todo?");
}

addEventListener("beforeunload", (event) => {
  if (hasDraft(document)) event.preventDefault();
});
