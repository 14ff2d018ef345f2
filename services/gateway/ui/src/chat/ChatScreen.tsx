/** The list of chats beside the open one; `id` null is a new chat. */
export function ChatScreen({ id }: { id: string | null }) {
  return <main className="main">{id}</main>;
}
