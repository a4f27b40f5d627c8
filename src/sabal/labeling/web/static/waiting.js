// What the page says when there is nothing to answer.

/** Title, text, share done (null: no bar, undefined: unknown) and whether all is over. */
export function reason(status) {
  if (!status) return { title: "Opening the project…", text: "", share: undefined };
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

/** Put the reason on the page. */
export function drawReason(status) {
  const { title, text, share, over } = reason(status);
  document.getElementById("message-title").textContent = title;
  document.getElementById("message-text").textContent = text;
  document.getElementById("message-link").hidden = !over;
  const bar = document.getElementById("message-bar");
  bar.hidden = share === null;
  if (share === undefined || share === null) bar.removeAttribute("value");
  else bar.value = share;
}
