// Static files from the cache, everything else from the network.

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
      if (response.ok) cache.put(event.request, response.clone());
      return response;
    }),
  );
});
