// What the source of the page (source.ts) answers to a plain request; what it refuses is an error in its own words.
import { source } from "./source";

export async function fetched(path: string, options?: RequestInit): Promise<Response> {
  const response = await source.fetch(path, options);
  if (response.ok) return response;
  const said = await response.text();
  let message = said;
  try {
    message = JSON.parse(said).message ?? said;
  } catch {
    // a plain sentence
  }
  throw new Error(message || `${path}: the server answered ${response.status}`);
}
