export default {
  input: "openapi.json",
  output: { path: "generated", module: { extension: ".js" } }, // Node wants extensions, bundlers do not
  plugins: ["@hey-api/typescript", "@hey-api/sdk", "@hey-api/client-fetch"],
};
