// The line to the server: one request under way and at most one that waits; the newest wins. A line that breaks is opened
// again, and what was asked last is asked again.
import { cancelMessage, Kind, parseAnswer, PROTOCOL, trackMessage, type Batch, type End } from "./messages";

export interface LiveListener {
  /** Before the first streamline of a request: what is shown belongs to an older one. */
  begin(): void;
  batch(batch: Batch): void;
  end(end: End, milliseconds: number): void;
  problem(message: string): void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8000;

export class LiveSocket {
  private socket: WebSocket | null = null;
  private request = 0;
  private plan: object | null = null;
  private asked = 0;
  private begun = false;
  private wait = FIRST_WAIT_MS;

  constructor(private readonly listener: LiveListener) {
    this.open();
  }

  ask(plan: object): void {
    this.plan = plan;
    this.request += 1;
    this.begun = false;
    this.asked = performance.now();
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(trackMessage(this.request, plan));
  }

  cancel(): void {
    this.plan = null;
    if (this.socket?.readyState === WebSocket.OPEN && this.request > 0) this.socket.send(cancelMessage(this.request));
    this.request += 1;
  }

  private open(): void {
    const address = new URL("live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    const socket = new WebSocket(address, PROTOCOL);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.wait = FIRST_WAIT_MS;
      if (this.plan) this.ask(this.plan);
    };
    socket.onmessage = (event) => this.take(event.data);
    socket.onclose = (event) => {
      this.socket = null;
      this.listener.problem(
        event.reason || `No line to the server; trying again in ${(this.wait / 1000).toFixed(1)} s. Is cingulum view still running?`,
      );
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
    };
    this.socket = socket;
  }

  private take(data: ArrayBuffer): void {
    let answer;
    try {
      answer = parseAnswer(data);
    } catch (error) {
      this.listener.problem(String(error));
      this.socket?.close(1000);
      return;
    }
    if (answer.request !== this.request) return; // of an older one, on its way when the newer was asked
    if (answer.kind === Kind.error) {
      this.listener.problem(answer.problem.message);
      return;
    }
    if (!this.begun) {
      this.begun = true;
      this.listener.begin();
    }
    if (answer.kind === Kind.batch) this.listener.batch(answer.batch);
    else this.listener.end(answer.end, performance.now() - this.asked);
  }
}
