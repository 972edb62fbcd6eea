// Static files from the cache, everything else from the network; notifications about what agents ask.

const CACHE = "static-2";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => {
  const clear = async () => {
    for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(clear());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin || !url.pathname.startsWith("/static/")) return;
  // An address with a hash is never out of date. Modules that import each other have none; the server is asked for them.
  if (!url.search) return;
  event.respondWith(
    caches.open(CACHE).then(async (cache) => {
      const found = await cache.match(event.request);
      if (found) return found;
      const response = await fetch(event.request);
      if (response.ok) event.waitUntil(keep(cache, event.request, response.clone()));
      return response;
    }),
  );
});

// The versions before of the same file are not asked for any more.
async function keep(cache, request, response) {
  await cache.put(request, response);
  for (const old of await cache.keys(request, { ignoreSearch: true })) {
    if (old.url !== request.url) await cache.delete(old);
  }
}

// --- notifications ------------------------------------------------------------------------------------------

self.addEventListener("push", (event) => {
  const { title, body, url, tag, answers, count } = event.data?.json() ?? { title: "Punchlist", body: "", url: "/" };
  const actions = answers ? [{ action: "approve", title: "Approve" }, { action: "deny", title: "Deny" }] : [];
  const shown = self.registration.showNotification(title, { body, tag, actions, icon: "/static/icon.svg", data: { url, answers } });
  event.waitUntil(Promise.all([shown, navigator.setAppBadge?.(count)]));
});

self.addEventListener("notificationclick", (event) => {
  const { url, answers } = event.notification.data;
  event.notification.close();
  event.waitUntil(event.action ? answer(answers, event.action, url) : open(url));
});

// A request that cannot be answered any more, or a login that has ended, opens the page.
async function answer(id, action, url) {
  try {
    const { csrf } = await (await fetch("/api/v1/me")).json();
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
    const body = JSON.stringify({ action });
    const response = await fetch(`/api/v1/inbox/${id}/answer`, { method: "POST", headers, body });
    if (!response.ok) await open(url);
  } catch {
    await open(url);
  }
}

async function open(url) {
  const pages = await self.clients.matchAll({ type: "window" });
  const page = pages[0] && (await pages[0].focus());
  return page ? page.navigate(url) : self.clients.openWindow(url);
}
