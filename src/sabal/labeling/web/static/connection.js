// Whether the server answers, and whether it can store what it is sent.

const NO_ROOM = /full|no space|disk i\/o|too large/i;
const events = new EventTarget();
let trouble = null;

/** What is wrong with the server, as {title, text}; null if nothing is. */
export function currentTrouble() {
  return trouble;
}

/** Call `listener` whenever what is wrong changes. */
export function onTrouble(listener) {
  events.addEventListener("change", listener);
}

/** A request found no server. */
export function lost() {
  set({
    title: "Connection lost",
    text: "The server does not answer. It was stopped, or this device is offline.",
  });
}

/** A request was answered; `refused` is the error, and `stores` tells requests that write. */
export function answered(refused, stores) {
  if (refused?.status === 401) set(SIGNED_OUT);
  else if (refused && !refused.byApp && refused.status !== 500) set(AWAY);
  else if (refused?.status === 503) set(unstored(refused.got));
  else if (refused?.status >= 500) set(FAILING);
  // Reading may work where storing does not: only a request that stores shows that it works again.
  else if (stores || trouble?.title === "Connection lost") set(null);
}

const AWAY = {
  title: "Connection lost",
  text: "The web server does not reach the app, which was stopped or is being started.",
};
const SIGNED_OUT = {
  title: "Signed out",
  text: "The server wants its token again: open the link that you were given.",
};
const FAILING = {
  title: "The server failed",
  text: "It answers with an error. Whoever runs the app finds the reason in its output.",
};

function unstored(got) {
  return NO_ROOM.test(got)
    ? { title: "Disk full", text: "The server has no room to store answers. Tell whoever runs the app." }
    : { title: "The server cannot store answers", text: `Its database says: ${got || "nothing"}. Tell whoever runs the app.` };
}

function set(found) {
  if (found?.title === trouble?.title && found?.text === trouble?.text) return;
  trouble = found;
  events.dispatchEvent(new Event("change"));
}
