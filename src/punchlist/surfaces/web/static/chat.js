// A chat: stays at the end while the person is at the end, sends with Ctrl+Enter, shows text while it is written.

import { refresh } from "./live.js";

const GAP = "…";
const MAX_KEPT = 30000;

export function openChat(chat) {
  const composer = document.querySelector(".composer form");
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
  const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight });
  let following = true;

  addEventListener("scroll", () => { following = atEnd(); }, { passive: true });
  if (chat.dataset.chat === "end") toEnd();
  document.addEventListener("refreshed", () => following && toEnd());
  composer?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.value.trim()) composer.requestSubmit();
  });
  composer?.addEventListener("submit", () => { following = true; });

  const place = document.querySelector("[data-live-text]");
  if (place) showLiveText(place, () => following && toEnd());
}

// What a model streams and running calls print, from the event stream. The stored message replaces it.
function showLiveText(place, grown) {
  const template = document.querySelector("#live-message");
  const streams = new Map();

  document.addEventListener("live-text", async ({ detail: piece }) => {
    if (piece.conversationId !== place.dataset.liveText) return;
    const key = `${piece.turnId} ${piece.callId ?? ""}`;
    if (piece.ended) {
      const ended = streams.get(key);
      streams.delete(key);
      await refresh();
      ended?.shown.remove();
      return;
    }
    let stream = streams.get(key);
    if (!stream) {
      const shown = template.content.cloneNode(true).firstElementChild;
      shown.querySelector(".by .strong").textContent = piece.callId ? "Output of a running call" : "Writing";
      place.append(shown);
      stream = { received: 0, text: "", shown };
      streams.set(key, stream);
    }
    add(stream, piece);
    stream.shown.querySelector(".prose").textContent = stream.text;
    grown();
  });
}

// Positions count characters as the server does, not UTF-16 units. After a lost connection, text is sent again.
function add(stream, { position, text }) {
  if (position === 0) Object.assign(stream, { received: 0, text: "" });
  const characters = [...text];
  const known = stream.received - position;
  if (known < 0) stream.text += GAP;
  stream.text = (stream.text + characters.slice(Math.max(known, 0)).join("")).slice(-MAX_KEPT);
  stream.received = Math.max(stream.received, position + characters.length);
}
