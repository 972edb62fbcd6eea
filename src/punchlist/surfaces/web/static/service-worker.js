// Static files from the cache, pages from the network, notifications that open the inbox.

const CACHE = "static-1";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  // The address of a static file contains its hash, so a cached one is never out of date.
  if (event.request.method !== "GET" || url.origin !== self.location.origin || !url.pathname.startsWith("/static/")) return;
  event.respondWith(
    caches.open(CACHE).then(async (cache) => {
      const found = await cache.match(event.request);
      if (found) return found;
      const response = await fetch(event.request);
      if (response.ok) cache.put(event.request, response.clone());
      return response;
    }),
  );
});

self.addEventListener("push", (event) => {
  const { title, body, url } = event.data ? event.data.json() : { title: "Punchlist", body: "", url: "/" };
  event.waitUntil(self.registration.showNotification(title, { body, icon: "/static/icon.svg", tag: url, data: { url } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = new URL(event.notification.data?.url ?? "/", self.location.origin).href;
  event.waitUntil(
    self.clients.matchAll({ type: "window" }).then(async (windows) => {
      const open = windows.find((each) => each.url === url) ?? windows[0];
      if (!open) return self.clients.openWindow(url);
      await open.focus();
      return open.url === url ? open : open.navigate(url);
    }),
  );
});
