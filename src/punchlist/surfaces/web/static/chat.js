// A chat: stays at the end while the person is at the end, sends with Ctrl+Enter, shows text while it is written.

import { toast } from "./forms.js";

const chat = document.querySelector("[data-chat]");
const composer = document.querySelector(".composer form");
const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
let following = true;

addEventListener("scroll", () => { following = atEnd(); }, { passive: true });
const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight });
if (chat.dataset.chat === "end") toEnd();
document.addEventListener("refreshed", () => following && toEnd());

composer?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.value.trim()) composer.requestSubmit();
});
composer?.addEventListener("submit", () => { following = true; });

// --- text while it is written -------------------------------------------------------------------------------

async function follow() {
  const url = chat.dataset.liveText;
  if (!url) return;
  let shown = "";
  while (document.querySelector("[data-chat]")) {
    try {
      const place = document.querySelector("[data-live-text]");
      if (place && !document.hidden) {
        const response = await fetch(url, { headers: { Accept: "application/json" } });
        if (response.ok) {
          const { text } = await response.json();
          if (text !== shown) {
            shown = text;
            place.textContent = text;
            place.closest(".message").hidden = !text;
            if (following) toEnd();
          }
        }
      }
    } catch {
      toast("The connection was lost.", true);
      return;
    }
    await new Promise((done) => { setTimeout(done, 250); });
  }
}
follow();
