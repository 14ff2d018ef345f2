/** Says why no model answers. */
export function ModelNotice() {
  return null;
}
