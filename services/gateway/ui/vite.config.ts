import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressed } from "./compressed.ts";

const GATEWAY = process.env["GATEWAY"] ?? "http://127.0.0.1:8420";

export default defineConfig({
  plugins: [react(), compressed()],
  build: {
    // Into the package, so that a wheel carries the pages; never committed.
    outDir: "../popagent_gateway/static",
    emptyOutDir: true,
    manifest: true,
    // Whoever is given the page is given the licences of what is in it.
    license: { fileName: "licences.md" },
    target: "es2022",
    // Everything is a file of its own: the policy of the pages allows no data: script and no inline style.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      checks: { bundlerTimings: false },
      // What the first view needs is one file, however many screens share a part of it.
      output: { codeSplitting: { groups: [{ name: "first", tags: ["$initial"] }] } },
      onwarn(warning, warn) {
        // Directives for server components mean nothing in a bundle for browsers.
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning);
      },
    },
  },
  // The gateway compares Origin with Host, so both reach it as the browser sent them.
  server: { proxy: { "/api": { target: GATEWAY, changeOrigin: false } } },
});
