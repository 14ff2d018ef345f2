import { defineConfig } from "vitest/config";

// A document costs more to make than most of these tests: a file that needs one begins with `// @vitest-environment happy-dom`.
export default defineConfig({
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
