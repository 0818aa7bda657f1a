// Brings the explorers of a page to life (the module is the package's own, copied here by the build).
import { hydrate } from "./explorer/explorer.js";

hydrate(document);
