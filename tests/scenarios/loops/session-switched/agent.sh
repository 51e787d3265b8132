# What a person does meanwhile: the checkout is on another branch, with something staged.
git switch -q main
echo mine > notes.txt
git add notes.txt
echo more >> notes.txt
echo done
