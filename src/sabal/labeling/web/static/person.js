// Who is labelling: known by a personal link, or else asked once and kept in this browser.

const PLACE = "sabal:annotator";

/** The name of the personal link, or the one that was given earlier, or "". */
export function knownName() {
  return document.body.dataset.person ?? localStorage.getItem(PLACE) ?? "";
}

/** Ask for the name; resolves once one is given. */
export function askName() {
  const dialog = document.getElementById("name-dialog");
  const form = document.getElementById("name-form");
  const field = document.getElementById("name");
  const required = !knownName();
  field.value = knownName();
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.oncancel = (event) => {
      if (required) event.preventDefault();
    };
    form.onsubmit = (event) => {
      const name = field.value.trim();
      if (!name) {
        event.preventDefault();
        return;
      }
      localStorage.setItem(PLACE, name);
      resolve(name);
    };
  });
}
