/** In pages an import map resolves the package's name. */
declare module "gradwire" {
  export * from "../src/index.ts";
}
