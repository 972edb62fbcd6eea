// Turns notifications on and off for this browser.

import { send, toast } from "./forms.js";

const button = document.querySelector("[data-push]");
const key = button.dataset.push;
const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));

async function show() {
  const registration = await navigator.serviceWorker?.ready;
  const subscription = await registration?.pushManager?.getSubscription();
  button.textContent = subscription ? "Turn notifications off" : "Turn notifications on";
  button.disabled = !registration?.pushManager;
  return { registration, subscription };
}

button.addEventListener("click", async () => {
  try {
    const { registration, subscription } = await show();
    if (subscription) {
      await send("/push/end", { endpoint: subscription.endpoint });
      await subscription.unsubscribe();
    } else {
      if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser does not allow notifications.");
      const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: decode(key) });
      await send("/push", { subscription: JSON.stringify(made) });
      toast("Notifications are on for this browser.");
    }
  } catch (error) {
    toast(error.message, true);
  }
  await show();
});
show();
