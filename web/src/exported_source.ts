// The source of a page that was exported: files of its folder under the names that a server would answer, and what a server
// would compute by the engine (exported_engine.ts), which speaks the messages of the socket.
import { ExportedEngine, type Engine } from "./exported_engine";
import { readLink } from "./link";
import { parseRequest } from "./messages";
import type { Line, Source } from "./source";

/** `choose` is called where the user wants the adapter that the page did not take. */
function showEngine(engine: Engine, choose: () => void): void {
  let place = document.getElementById("engine");
  if (!place) {
    place = document.createElement("p");
    place.id = "engine";
    place.className = "hint";
    place.setAttribute("role", "status");
    document.getElementById("live")?.prepend(place);
  }
  document.body.dataset.engine = engine.by;
  if (engine.by === "gpu") {
    place.textContent = `Tracked in this browser by ${engine.name}, whose bits are those of the CPU.`;
  } else if (engine.by === "inexact") {
    place.textContent = `Tracked in this browser by ${engine.name}: not exact. Its bits are not those of the command.`;
  } else if (engine.by === "lost") {
    place.textContent = `${engine.name} was lost: ${engine.why}. The next click is answered, with the same bits.`;
  } else if (engine.refused !== null) {
    place.replaceChildren(
      `${engine.refused} does not give the bits of the CPU: ${engine.why}. The processor tracks instead, exactly. `,
      chooser("use-inexact", `Use ${engine.refused} (not exact)`, choose),
    );
  } else {
    place.textContent = `Tracked in this browser by the processor, with the bits of the command: ${engine.why}. `;
    if (engine.offered !== null) place.append(chooser("use-adapter", `Use ${engine.offered}`, choose));
  }
}

function chooser(id: string, text: string, choose: () => void): HTMLButtonElement {
  const button = document.createElement("button");
  button.id = id;
  button.textContent = text;
  button.addEventListener("click", choose);
  return button;
}

/** A line to the engine. */
class EngineLine implements Line {
  readyState: number = WebSocket.CONNECTING;
  onopen: Line["onopen"] = null;
  onmessage: Line["onmessage"] = null;
  onclose: Line["onclose"] = null;

  constructor(private readonly engine: ExportedEngine) {
    queueMicrotask(() => {
      this.readyState = WebSocket.OPEN;
      this.onopen?.(new Event("open"));
    });
  }

  send(bytes: Uint8Array<ArrayBuffer>): void {
    const request = parseRequest(bytes);
    if (request.text === null) return this.engine.cancel(request.number);
    this.engine.ask(request.number, request.text, (answer) => {
      if (this.readyState === WebSocket.OPEN) this.onmessage?.(new MessageEvent("message", { data: answer.buffer }));
    });
  }
  close(): void {
    this.readyState = WebSocket.CLOSED;
    this.onclose?.(new CloseEvent("close"));
  }
}

export async function openExportedSource(): Promise<Source> {
  const folder = new URL(".", document.baseURI);
  const place = document.getElementById("message")!;
  const response = await fetch(new URL("api/files", folder));
  if (!response.ok) throw new Error(`api/files: the web server answered ${response.status}`);
  const text = await response.text();
  const listing = JSON.parse(text);
  let engine: ExportedEngine | null = null;
  if (listing.tracks) {
    place.textContent = "Loading the field.";
    engine = await ExportedEngine.open(folder, new TextEncoder().encode(text), listing.check, (share) => {
      place.textContent = `Loading the field: ${Math.round(100 * share)} %.`;
    });
  }
  place.hidden = true;
  place.textContent = "";
  let sidecar: Record<string, unknown> = {}; // of what was saved last
  const source: Source = {
    async fetch(path, options) {
      if (path === "api/files") return new Response(text);
      const picture = /^api\/(glyphs|peaks)\/([0-2])\/(.+)$/.exec(path);
      if (engine && picture) return new Response(engine.picture(picture[1] as "glyphs" | "peaks", Number(picture[2]), Number(picture[3])));
      if (engine && path === "api/save") {
        const saved = await engine.save(String(options!.body));
        sidecar = saved.sidecar;
        return new Response(saved.bytes, { headers: { "X-Cingulum-Command": saved.command } });
      }
      if (engine && path === "api/save-sidecar") return new Response(`${JSON.stringify(sidecar, null, 2)}\n`);
      return fetch(new URL(path, folder), options);
    },
    openLine() {
      const tracking = engine!;
      const chooseAdapter = () => {
        document.body.dataset.adapter = "chosen"; // for the link
        tracking.useAdapter();
      };
      if (readLink(location.hash).adapter) chooseAdapter();
      tracking.onEngine = (now) => showEngine(now, () => {
        if (now.by === "processor" && now.refused !== null) tracking.useInexact();
        else chooseAdapter();
        void tracking.start();
      });
      tracking.start().catch((error) => showEngine({ by: "processor", why: String(error.message ?? error), refused: null, offered: null }, () => {}));
      return new EngineLine(tracking);
    },
  };
  return source;
}
