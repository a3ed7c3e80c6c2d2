import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = "http://127.0.0.1:8082"; // of `npm run dev`

export default defineConfig({
  plugins: [react()],
  css: { modules: { generateScopedName: "[name]_[local]_[hash:base64:4]" } },
  build: {
    outDir: "../src/noetl/server/static",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": server, "/health": server, "/ready": server } },
});
