// Where the page gets what it shows: the server that served it, or, where it was exported, its own folder and the browser
// itself (exported_source.ts). The page does not know which.
import { openExportedSource } from "./exported_source";
import { PROTOCOL } from "./messages";

/** What the page uses of a WebSocket. */
export interface Line {
  readonly readyState: number;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(message: Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
}

export interface Source {
  fetch(path: string, options?: RequestInit): Promise<Response>;
  openLine(): Line;
}

const server: Source = {
  fetch: (path, options) => fetch(path, options),
  openLine() {
    const address = new URL("live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    const socket = new WebSocket(address, PROTOCOL);
    socket.binaryType = "arraybuffer";
    return socket;
  },
};

/** That of this page, once it was opened. */
export let source: Source = server;

export async function openSource(): Promise<void> {
  const exported = document.querySelector('meta[name="cingulum-source"][content="exported"]');
  if (exported) source = await openExportedSource();
}
