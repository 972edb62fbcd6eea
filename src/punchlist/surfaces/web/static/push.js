// Turns messages about the inbox on and off in this browser.

import { toast } from "./forms.js";

const button = document.querySelector("[data-push]");
const text = document.querySelector("[data-push-text]");

async function call(method, body) {
  const response = await fetch("/api/v1/push", {
    method,
    body: body && JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-CSRF-Token": document.body.dataset.csrf },
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

function bytes(key) {
  const raw = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(raw, (character) => character.charCodeAt(0));
}

async function turnOn(manager) {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("This browser does not let the page show notifications. Allow them in its settings for this site.");
  }
  const { publicKey } = await call("GET");
  const subscription = await manager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(publicKey) });
  const { endpoint, keys } = subscription.toJSON();
  try {
    await call("POST", { endpoint, keys });
  } catch (error) {
    await subscription.unsubscribe();
    throw error;
  }
}

async function turnOff(subscription) {
  await call("DELETE", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}

async function show() {
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !window.isSecureContext) {
    text.textContent = "This browser cannot show notifications of this page. They need https, or this machine's own address.";
    return;
  }
  const { pushManager } = await navigator.serviceWorker.ready;
  const current = await pushManager.getSubscription();
  button.textContent = current ? "Turn off" : "Turn on";
  button.disabled = false;
  button.onclick = async () => {
    button.disabled = true;
    try {
      await (current ? turnOff(current) : turnOn(pushManager));
    } catch (error) {
      toast(error.message, true);
    }
    show();
  };
}
show();
