// The line to the server. While one drags, requests come faster than answers: the server answers one, and then the newest
// that waits; what it answers is shown, older ones never after newer ones. A line that breaks is opened again, and what was
// asked last is asked again.
import { cancelMessage, Kind, parseAnswer, trackMessage, type Batch, type End } from "./messages";
import type { Line, Source } from "./source";

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
  private socket: Line | null = null;
  private request = 0;
  private plan: object | null = null;
  private readonly asked = new Map<number, number>(); // when, by request
  private begun = 0; // the request whose streamlines are shown
  private cancelled = 0; // answers up to this request are not wanted any more
  private wait = FIRST_WAIT_MS;

  constructor(private readonly listener: LiveListener, private readonly source: Source) {
    this.open();
  }

  ask(plan: object): void {
    this.plan = plan;
    this.request += 1;
    this.asked.set(this.request, performance.now());
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(trackMessage(this.request, plan));
  }

  cancel(): void {
    this.plan = null;
    if (this.socket?.readyState === WebSocket.OPEN && this.request > 0) this.socket.send(cancelMessage(this.request));
    this.cancelled = this.request;
  }

  private open(): void {
    const socket = this.source.openLine();
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
    const { request } = answer;
    if (answer.kind === Kind.lines || answer.kind === Kind.places) return; // of files, which no socket sends
    if (request <= this.cancelled || request < this.begun || request > this.request) return;
    const asked = this.asked.get(request) ?? performance.now();
    for (const older of this.asked.keys()) if (older < request) this.asked.delete(older);
    if (answer.kind === Kind.error) {
      this.listener.problem(answer.problem.message);
      return;
    }
    if (this.begun !== request) {
      this.begun = request;
      this.listener.begin();
    }
    if (answer.kind === Kind.batch) this.listener.batch(answer.batch);
    else if (answer.kind === Kind.end) this.listener.end(answer.end, performance.now() - asked);
  }
}
