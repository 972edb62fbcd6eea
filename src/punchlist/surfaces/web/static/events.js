// One event stream for all pages of this browser. HTTP/1.1 allows six connections to one host, so with a stream in every
// tab the seventh would wait for ever.
//
// One visible page leads: it holds a Web Lock and the connection, and forwards what arrives over a BroadcastChannel.
// Every page knows the last event that it has seen. A page that takes over, because the leader was closed, hidden or
// does not answer, continues after that event, so none is lost. A hidden page takes no part and asks for what it missed
// when it is shown; without a visible page there is no connection.

const NAME = "punchlist-events";
const BEAT = 2000;
// A leader that is silent for so long is frozen, or blocked by a dialog.
const SILENCE = 3 * BEAT;

let listener;
let address;
let wantsText;
let seen;
let offline = false;
// What this page has while it takes part.
let membership = null;

// `told` has `changed()`, `text(piece)` and `offline(isOffline)`.
export function follow(url, told) {
  listener = told;
  address = new URL(url, location.href);
  wantsText = address.searchParams.has("text");
  seen = Number(address.searchParams.get("after"));
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : join(true)));
  // A page that is left may be kept in memory, and a frozen one runs nothing.
  addEventListener("pagehide", leave);
  document.addEventListener("freeze", leave);
  document.addEventListener("resume", () => document.hidden || join(true));
  addEventListener("pageshow", () => document.hidden || join(true));
  if (!document.hidden) join(false);
}

function join(again) {
  if (membership) return;
  const member = { again, text: wantsText, source: null, failures: 0, heard: performance.now() };
  membership = member;
  if (!navigator.locks || !self.BroadcastChannel) return connect(member);
  member.channel = new BroadcastChannel(NAME);
  member.channel.onmessage = ({ data }) => receive(member, data);
  member.channel.postMessage({ kind: "hello", text: wantsText });
  member.beat = setInterval(() => check(member), BEAT);
  wait(member);
}

function leave() {
  const member = membership;
  if (!member) return;
  membership = null;
  clearInterval(member.beat);
  disconnect(member);
  member.channel?.close();
  member.waiting?.abort();
  member.release?.();
}

// --- the leader ---------------------------------------------------------------------------------------------

async function wait(member) {
  let steal = false;
  while (member === membership) {
    member.waiting = new AbortController();
    const options = steal ? { steal } : { signal: member.waiting.signal };
    steal = false;
    try {
      await navigator.locks.request(NAME, options, () => lead(member));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      // This page stopped waiting in order to take the lock, or another page took it.
      steal = !member.source;
      disconnect(member);
      member.heard = performance.now();
    }
  }
}

function lead(member) {
  if (member !== membership) return;
  connect(member);
  tell(member);
  return new Promise((release) => { member.release = release; });
}

function connect(member) {
  disconnect(member);
  const url = new URL(address);
  url.searchParams.set("after", seen);
  if (member.text) url.searchParams.set("text", "true");
  const source = (member.source = new EventSource(url));
  const on = (name, message) => source.addEventListener(name, (event) => {
    const sent = source === member.source && message(event);
    if (!sent) return;
    receive(member, sent);
    member.channel?.postMessage(sent);
  });
  on("change", (event) => ({ kind: "change", last: Number(event.lastEventId) }));
  on("text", (event) => ({ kind: "text", piece: JSON.parse(event.data) }));
  // The server has fewer events than this page has seen: its database was restored.
  on("reset", (event) => ({ kind: "reset", last: Number(event.lastEventId) }));
  on("open", () => {
    const { failures } = member;
    member.failures = 0;
    return failures && { kind: "back" };
  });
  on("error", () => {
    member.failures += 1;
    if (source.readyState === EventSource.CLOSED) {
      member.next = setTimeout(() => connect(member), Math.min(500 * member.failures, 5000));
      // The server refused it. The login may have ended: a request for the content of the page finds out.
      listener.changed();
    }
    return member.failures > 1 && { kind: "offline" };
  });
}

function disconnect(member) {
  clearTimeout(member.next);
  member.source?.close();
  member.source = null;
}

function tell(member) {
  member.channel.postMessage({ kind: "position", last: seen, offline, text: member.text });
}

function check(member) {
  if (member.source) tell(member);
  else if (performance.now() - member.heard > SILENCE) member.waiting.abort();
}

// --- every page ---------------------------------------------------------------------------------------------

function receive(member, message) {
  if (member !== membership) return;
  member.heard = performance.now();
  if (message.kind === "hello") {
    if (member.source) welcome(member, message);
  } else if (message.kind === "position") {
    if (!member.source) catchUp(member, message);
  } else if (message.kind === "change") {
    if (message.last > seen) see(message.last);
  } else if (message.kind === "reset") {
    see(message.last);
  } else if (message.kind === "text") {
    listener.text(message.piece);
  } else {
    showOffline(message.kind === "offline");
    if (message.kind === "back") listener.changed();
  }
}

function welcome(member, { text }) {
  if (text) {
    // The server sends only a new stream what was written so far.
    member.text = true;
    connect(member);
  }
  tell(member);
}

function catchUp(member, { last, offline, text }) {
  showOffline(offline);
  // A page that was hidden does not know whether the database was restored, to an earlier position.
  if (last > seen || (member.again && last !== seen)) see(last);
  member.again = false;
  if (wantsText && !text) member.channel.postMessage({ kind: "hello", text: true });
}

function see(last) {
  seen = last;
  listener.changed();
}

function showOffline(now) {
  if (now !== offline) listener.offline(now);
  offline = now;
}
