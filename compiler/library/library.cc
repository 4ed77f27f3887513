// Red-black trees and doubly linked lists on libstdc++'s nodes (README.md).
//
// A tree's header is a node too: its parent is the root, its left and right the first and the last node, its colour
// red; the root's parent is the header. Of an empty tree the root is null, and first and last are the header.
// Balance: insertion and removal as in Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, chapter 13.
// Threads: as the containers'. Nothing here allocates or throws.

namespace {

enum Colour : int { kRed = 0, kBlack = 1 };

struct Node {
  Colour colour;
  Node* parent;
  Node* left;
  Node* right;
};

bool is_red(const Node* node) { return node != nullptr && node->colour == kRed; }

Node* first_of(Node* node) {
  while (node->left != nullptr) node = node->left;
  return node;
}
Node* last_of(Node* node) {
  while (node->right != nullptr) node = node->right;
  return node;
}

Node*& child(Node* node, bool is_left) { return is_left ? node->left : node->right; }

// Where the tree names `node`: in its parent, or in the header for the root.
Node*& link_to(Node* node, Node& header) {
  if (header.parent == node) return header.parent;
  return child(node->parent, node->parent->left == node);
}

// `node` goes down to the side named, the child of the other side up.
void rotate(Node* node, bool to_left, Node& header) {
  Node* up = child(node, !to_left);
  link_to(node, header) = up;
  up->parent = node->parent;
  Node* across = child(up, to_left);
  child(node, !to_left) = across;
  if (across != nullptr) across->parent = node;
  child(up, to_left) = node;
  node->parent = up;
}

void balance_after_insert(Node* node, Node& header) {
  while (node != header.parent && node->parent->colour == kRed) {
    Node* parent = node->parent;
    Node* grandparent = parent->parent;
    const bool on_left = parent == grandparent->left;
    Node* uncle = child(grandparent, !on_left);
    if (is_red(uncle)) {
      parent->colour = uncle->colour = kBlack;
      grandparent->colour = kRed;
      node = grandparent;
      continue;
    }
    if (node == child(parent, !on_left)) {
      rotate(parent, on_left, header);
      parent = node;
    }
    parent->colour = kBlack;
    grandparent->colour = kRed;
    rotate(grandparent, !on_left, header);
    break;
  }
  header.parent->colour = kBlack;
}

// A black node is missing on the way to the child of `parent` on that side.
void balance_after_erase(Node* parent, bool on_left, Node& header) {
  while (parent != &header) {
    Node* node = child(parent, on_left);
    if (is_red(node)) {
      node->colour = kBlack;
      return;
    }
    Node* sibling = child(parent, !on_left);
    if (is_red(sibling)) {
      sibling->colour = kBlack;
      parent->colour = kRed;
      rotate(parent, on_left, header);
      sibling = child(parent, !on_left);
    }
    if (!is_red(sibling->left) && !is_red(sibling->right)) {
      sibling->colour = kRed;
      Node* above = parent->parent;
      // Of the root's two children both ways are one shorter now.
      if (parent == header.parent) {
        parent->colour = kBlack;
        return;
      }
      on_left = above->left == parent;
      parent = above;
      continue;
    }
    if (!is_red(child(sibling, !on_left))) {
      child(sibling, on_left)->colour = kBlack;
      sibling->colour = kRed;
      rotate(sibling, !on_left, header);
      sibling = child(parent, !on_left);
    }
    sibling->colour = parent->colour;
    parent->colour = kBlack;
    child(sibling, !on_left)->colour = kBlack;
    rotate(parent, on_left, header);
    return;
  }
  if (header.parent != nullptr) header.parent->colour = kBlack;
}

// `node` and its successor, which lies in its right subtree, change places and colours.
void swap_with_next(Node* node, Node* next, Node& header) {
  Node*& to_node = link_to(node, header);
  const Colour colour = next->colour;
  next->colour = node->colour;
  node->colour = colour;
  Node* below = next->right;
  if (next == node->right) {
    next->right = node;
    next->parent = node->parent;
    node->parent = next;
  } else {
    Node* above = next->parent;
    above->left = node;
    next->right = node->right;
    next->right->parent = next;
    next->parent = node->parent;
    node->parent = above;
  }
  to_node = next;
  next->left = node->left;
  next->left->parent = next;
  node->left = nullptr;
  node->right = below;
  if (below != nullptr) below->parent = node;
}

struct ListNode {
  ListNode* next;
  ListNode* previous;
};

}  // namespace

extern "C" {

void __spw_tree_insert(bool on_left, Node* node, Node* parent, Node& header) {
  *node = {kRed, parent, nullptr, nullptr};
  if (parent == &header) {
    header.parent = header.left = header.right = node;
  } else {
    child(parent, on_left) = node;
    if (on_left && parent == header.left) header.left = node;
    if (!on_left && parent == header.right) header.right = node;
  }
  balance_after_insert(node, header);
}

// Takes `node` out and returns it.
Node* __spw_tree_erase(Node* node, Node& header) {
  if (node->left != nullptr && node->right != nullptr) swap_with_next(node, first_of(node->right), header);
  Node* below = node->left != nullptr ? node->left : node->right;
  Node* parent = node->parent;
  const bool was_root = header.parent == node;
  const bool on_left = !was_root && parent->left == node;
  if (header.left == node) header.left = below != nullptr ? first_of(below) : parent;
  if (header.right == node) header.right = below != nullptr ? last_of(below) : parent;
  if (was_root)
    header.parent = below;
  else
    child(parent, on_left) = below;
  if (below != nullptr) below->parent = parent;
  if (node->colour == kBlack) balance_after_erase(parent, on_left, header);
  return node;
}

Node* __spw_tree_next(Node* node) {
  if (node->right != nullptr) return first_of(node->right);
  Node* parent = node->parent;
  while (node == parent->right) {
    node = parent;
    parent = parent->parent;
  }
  // Above the last node, when that is the root, the way ends at the header, whose right it is.
  return node->right != parent ? parent : node;
}

Node* __spw_tree_previous(Node* node) {
  if (node->colour == kRed && node->parent->parent == node)
    return node->right;  // the header: behind the last
  if (node->left != nullptr) return last_of(node->left);
  Node* parent = node->parent;
  while (node == parent->left) {
    node = parent;
    parent = parent->parent;
  }
  return parent;
}

// In front of `place`.
void __spw_list_hook(ListNode* node, ListNode* place) {
  node->next = place;
  node->previous = place->previous;
  place->previous->next = node;
  place->previous = node;
}

void __spw_list_unhook(ListNode* node) {
  node->previous->next = node->next;
  node->next->previous = node->previous;
}

// [first, end) goes in front of `place`, which is not among them.
void __spw_list_transfer(ListNode* place, ListNode* first, ListNode* end) {
  if (place == end || first == end) return;
  ListNode* last = end->previous;
  first->previous->next = end;
  end->previous = first->previous;
  place->previous->next = first;
  first->previous = place->previous;
  last->next = place;
  place->previous = last;
}

void __spw_list_reverse(ListNode* list) {
  ListNode* node = list;
  do {
    ListNode* next = node->next;
    node->next = node->previous;
    node->previous = next;
    node = next;
  } while (node != list);
}

}  // extern "C"
