;; Claims a hundred million taint keys.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 96) "\00\04\00\00\00\e1\f5\05")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
