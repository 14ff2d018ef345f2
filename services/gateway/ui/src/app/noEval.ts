// The schemas of the AI SDK would try whether `new Function` works; the policy of this page says no, and the browser
// reports the attempt. Imported before everything else.
(globalThis as { __zod_globalConfig?: object }).__zod_globalConfig = { jitless: true };
export {};
