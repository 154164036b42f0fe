// Elements of the page by their id, and what is said in them.

export const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

export function say(message: string | null): void {
  const place = byId("message");
  place.hidden = message === null;
  place.textContent = message ?? "";
}

/** For what a promise fails with. */
export const sayError = (error: any): void => say(String(error.message ?? error));

export function listed(place: HTMLElement, rows: [string, string][]): void {
  place.replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const term = document.createElement("dt");
      const text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      return [term, text];
    }),
  );
}

export function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
