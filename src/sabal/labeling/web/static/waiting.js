// What the page says when there is nothing to answer.

/** What is known to be so: title, text, share done (null: no bar, undefined: unknown), all over. */
export function reason(status) {
  if (status.training === "failed") {
    return {
      title: "Learning failed",
      text: `${status.error ?? "The worker does not say why."} It tries again by itself; your labels are safe.`,
      share: null,
    };
  }
  if (status.finished) {
    return {
      title: "All done",
      text: `${status.labeled} labels are stored: ${status.ended}. Thank you.`,
      share: null,
      over: true,
    };
  }
  if (status.training === "features") {
    return {
      title: "Getting to know your items",
      text: "This happens once. The first batch follows by itself.",
      share: status.progress,
    };
  }
  if (status.round === null) {
    return { title: "Choosing the first batch", text: "A moment, please.", share: undefined };
  }
  if (status.waits_for && status.remaining === status.partly) {
    return {
      title: "Waiting for somebody else",
      text: `${status.waits_for}. You have answered all that you can; the next batch follows once they have.`,
      share: null,
    };
  }
  if (status.remaining > 0) {
    return {
      title: "Nothing open for you",
      text: "Others hold the last items of this batch. The next one follows by itself.",
      share: undefined,
    };
  }
  return {
    title: "Learning from your answers",
    text: `All ${status.labeled} labels are stored. The next batch follows by itself.`,
    share: undefined,
  };
}

/** What is said until the server has told what is so. */
export const UNKNOWN = { title: "One moment…", text: "Asking the server for items.", share: undefined };

/** Nothing: what is not known yet is not said, and most of the time the next item comes first. */
export const NOTHING = { title: "", text: "", share: null };

/** What becomes of answers that are kept here while the server is in trouble. */
export function keptWords(kept, open) {
  const sent = kept === 1 ? "1 answer is kept in this browser and is" : `${kept} answers are kept in this browser and are`;
  const safe = kept
    ? `${sent} sent once the server can store answers again, even if you close this page and come back later.`
    : "All your answers are stored.";
  return `${safe} ${open ? "You can go on labelling." : "The page goes on by itself."}`;
}

/** Put a reason on the page: of `reason`, or any other {title, text, share}. */
export function drawReason({ title, text, share, over }) {
  document.getElementById("message-title").textContent = title;
  document.getElementById("message-title").hidden = !title;
  document.getElementById("message-text").textContent = text;
  document.getElementById("message-link").hidden = !over;
  const bar = document.getElementById("message-bar");
  bar.hidden = share === null;
  if (share === undefined || share === null) bar.removeAttribute("value");
  else bar.value = share;
}
