// The commands that need LibTorch. `trireme` becomes this program when one of them is asked for.
int main() { return 0; }
