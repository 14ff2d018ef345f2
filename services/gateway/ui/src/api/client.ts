import type { ErrorBody } from "../contracts";
import { keyHeaders } from "./key";

/** A refusal of the gateway in its own words, or a failure to reach it (`status` 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly field: string | null,
    /** What stands beside the error, as the stored `session` of a conflict. */
    readonly body: Record<string, unknown>,
    /** Seconds after which another attempt makes sense; null when the gateway named none. */
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }
}

export const UNREACHABLE = "popagent does not answer. Is it running? Start it with `popagent up`.";
const unauthorized = new Set<() => void>();

/** Call back whenever an answer says that a key is missing or wrong. */
export function onUnauthorized(tell: () => void): () => void {
  unauthorized.add(tell);
  return () => unauthorized.delete(tell);
}

interface Options {
  body?: unknown;
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
  /** Carried out although the page is left. */
  keepalive?: boolean;
}

/** Ask the gateway and return the response; anything but 2xx is thrown as ApiError. */
export async function request(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...keyHeaders(), ...options.headers };
  const init: RequestInit = { method, headers, signal: options.signal ?? null, keepalive: options.keepalive ?? false };
  if (options.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(UNREACHABLE, 0, "unreachable", null, {});
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  let body: Partial<ErrorBody> & Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed !== null && typeof parsed === "object") body = parsed as typeof body;
  } catch {
    // not ours: something between answered; its status says enough
  }
  const message = typeof body.error === "string" ? body.error : `The server answered ${response.status}.`;
  if (response.status === 401) for (const tell of unauthorized) tell();
  const retryAfter = Number(response.headers.get("retry-after"));
  return new ApiError(
    message,
    response.status,
    typeof body.code === "string" ? body.code : "",
    typeof body.field === "string" ? body.field : null,
    body,
    retryAfter > 0 ? retryAfter : null,
  );
}

async function json<T>(method: string, path: string, options?: Options): Promise<T> {
  return (await (await request(method, path, options)).json()) as T;
}

export const api = {
  get: <T>(path: string, signal?: AbortSignal) => json<T>("GET", path, { signal }),
  post: <T>(path: string, body?: unknown) => json<T>("POST", path, { body }),
  put: <T>(path: string, body: unknown) => json<T>("PUT", path, { body }),
  patch: <T>(path: string, body: unknown) => json<T>("PATCH", path, { body }),
  delete: <T>(path: string) => json<T>("DELETE", path),
};

/** Build a query string of what is set. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : "";
}

/** Say what failed to a person, whatever was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof Error) return error.message;
  return String(error);
}

/** Whether the gateway answered that what is behind it does not. */
export function isAway(error: unknown): boolean {
  return error instanceof ApiError && [503, 504].includes(error.status);
}
