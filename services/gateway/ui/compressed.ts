import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const WORTH_IT = /\.(?:css|js|json|svg)$/;
const SMALLEST = 1024;

/** Writes `.br` and `.gz` beside every asset, once, so that the gateway packs nothing while it answers. */
export function compressed(): Plugin {
  return {
    name: "popagent-compressed",
    apply: "build",
    async writeBundle({ dir }, bundle) {
      if (!dir) throw new Error("the build writes into no folder");
      await Promise.all(
        Object.values(bundle).map(async (output) => {
          const content = Buffer.from(output.type === "chunk" ? output.code : output.source);
          const packs = output.fileName.startsWith("assets/") && WORTH_IT.test(output.fileName);
          if (!packs || content.length < SMALLEST) return;
          const file = join(dir, output.fileName);
          const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
          await writeFile(`${file}.br`, await promisify(brotliCompress)(content, quality));
          await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
        }),
      );
    },
  };
}
