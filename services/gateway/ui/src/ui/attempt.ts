import { sentence } from "../api/client";
import { say } from "./toasts";

/** Wait for work that a person asked for; say why it failed, if it did. */
export async function attempt(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    say(sentence(error));
  }
}
