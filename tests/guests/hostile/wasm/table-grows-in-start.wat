;; Grows a table in its start function, and gives up.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (table $t 1 funcref)
    (func $start (loop (br_if 0 (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0)))) unreachable)
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
