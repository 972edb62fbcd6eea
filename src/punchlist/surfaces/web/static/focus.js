// Where the focus goes when a form has been sent. Its button is disabled meanwhile and may be gone afterwards; without
// a focus, the keyboard starts at the top of the page again.

const isShown = (node) => node?.isConnected && node.checkVisibility();

// Called when the form is sent; what it returns is called when the page shows the result.
export function focusAfter(form, submitter) {
  const requests = [...document.querySelectorAll("[data-request]")];
  const answered = requests.indexOf(form.closest("[data-request]"));
  const others = answered < 0 ? [] : [...requests.slice(answered + 1), ...requests.slice(0, answered).reverse()];
  const details = form.closest("details.action");
  const around = [];
  for (let node = form.parentElement; node; node = node.parentElement) {
    if (node.matches("article, section, aside, .panel, main")) around.push(node);
  }
  return () => {
    const active = document.activeElement;
    // The person has moved on meanwhile.
    if (active !== document.body && active?.isConnected && !form.contains(active)) return;
    const next = isShown(form) ? fieldOf(form, submitter) : isShown(details) ? details.querySelector("summary") : null;
    if (next) return next.focus({ preventScroll: true });
    const request = others.map(({ id }) => document.getElementById(id)).find(isShown);
    if (request) return focusHeading(request.querySelector("h3"), false);
    for (const place of around.filter(isShown)) {
      const heading = place.querySelector("h1, h2, h3");
      if (isShown(heading)) return focusHeading(heading, true);
    }
  };
}

// Of a form that is sent again and again, such as a message: its field.
function fieldOf(form, submitter) {
  if (form.hasAttribute("data-again")) return form.querySelector("textarea, input:not([type=hidden])");
  return isShown(submitter) ? submitter : null;
}

function focusHeading(heading, preventScroll) {
  heading.tabIndex = -1;
  heading.focus({ preventScroll });
}
