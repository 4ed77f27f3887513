(* A hash table of lists and strings: heap COUNT. *)
let () =
  let count = int_of_string Sys.argv.(1) in
  let table = Hashtbl.create 16 in
  for i = 0 to count - 1 do
    Hashtbl.replace table i (List.init 8 (fun k -> i * k), String.make 200 (Char.chr (i mod 251)));
    if i mod 5 = 0 then Hashtbl.remove table (i / 2)
  done;
  let sum = ref 0 in
  for i = 0 to count - 1 do
    match Hashtbl.find_opt table i with
    | Some (list, text) -> sum := (!sum * 31 + List.fold_left (+) 0 list + Char.code text.[i mod 200]) mod 1000000007
    | None -> ()
  done;
  Printf.printf "%d %d\n" (Hashtbl.length table) !sum
