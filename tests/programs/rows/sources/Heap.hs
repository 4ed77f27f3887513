-- A map of lists, collected by copying: heap COUNT.
import qualified Data.Map.Strict as Map
import Data.List (foldl')
import System.Environment (getArgs)

main :: IO ()
main = do
  [count] <- map read <$> getArgs
  let one i = let list = [i, i * 3 .. i * 3 + 8 * (i + 1)] in foldl' (+) 0 list `seq` list
      built = foldl' (\m i -> Map.insert (i * 7919 `mod` 1000003) (take 8 (one i)) m) Map.empty [1 .. count :: Int]
  print (Map.size built, foldl' (\s l -> (s * 31 + sum l) `mod` 1000000007) 7 (Map.elems built))
